"""Every session in `sessions/`, typed with every kubectl there is.

With controllers beside the server the usual one is enough: what differs between it and the others
is how kubectl asks, not what the controllers do.
"""

import pytest

from e2e import kubectls, session
from e2e.beside import INSIDE, WHERE
from e2e.kubectls import Kubectl
from e2e.shell import Shell

_USUAL = [kubectl for kubectl in kubectls.find() if kubectl.main][-1]
CASES = {
    f"{name}-{kubectl}-{where}": (name, kubectl, where)
    for kubectl in kubectls.find()
    for name in session.names()
    if kubectl.main or session.is_core(name)
    for where in (WHERE if kubectl is _USUAL else (INSIDE,))
}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("name", "kubectl", "where"),
    CASES.values(),
    ids=CASES.keys(),
    indirect=["where"],
    scope="session",
)
def test_session(name: str, kubectl: Kubectl, shell: Shell) -> None:
    text = (session.FOLDER / f"{name}.session").read_text()

    for step in session.steps(text, kubectl.minor):
        difference = step.difference(shell.run(step.command))
        assert not difference, "\n" + difference
