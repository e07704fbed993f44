"""Every session in `sessions/`, typed with every kubectl there is."""

import pytest

from e2e import kubectls, session
from e2e.kubectls import Kubectl
from e2e.shell import Shell

CASES = {
    f"{name}-{kubectl}": (name, kubectl)
    for kubectl in kubectls.find()
    for name in session.names()
    if kubectl.main or session.is_core(name)
}


@pytest.mark.e2e
@pytest.mark.parametrize(("name", "kubectl"), CASES.values(), ids=CASES.keys())
def test_session(name: str, kubectl: Kubectl, shell: Shell) -> None:
    text = (session.FOLDER / f"{name}.session").read_text()

    for step in session.steps(text, kubectl.minor):
        difference = step.difference(shell.run(step.command))
        assert not difference, "\n" + difference
