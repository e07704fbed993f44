"""Every session in `sessions/`, typed with every kubectl there is.

The usual one is used with controllers beside the server, the others with controllers inside: what
differs between them is how kubectl asks, not what the controllers do. `make robust` runs the usual
one with both.
"""

import pytest

from e2e import kubectls, session
from e2e.beside import BESIDE, INSIDE, WHERE
from e2e.kubectls import Kubectl
from e2e.shell import Shell
from property_examples import ALL

_MAIN = [kubectl for kubectl in kubectls.find() if kubectl.main]


def _forms(kubectl: Kubectl) -> tuple[str, ...]:
    if kubectl is not _MAIN[-1]:
        return (INSIDE,)
    return WHERE if ALL or len(_MAIN) == 1 else (BESIDE,)


CASES = {
    f"{name}-{kubectl}-{where}": (name, kubectl, where)
    for kubectl in kubectls.find()
    for name in session.names()
    if kubectl.main or session.is_core(name)
    for where in _forms(kubectl)
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
