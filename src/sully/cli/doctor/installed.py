"""Checks on a server that is not Sully's the controllers that `sully install` has installed."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sully.cli.doctor.leases import lease_finding
from sully.client.discovery.control_plane import installed_deployment
from sully.client.reviews import UserInfo, may
from sully.client.transport import Key
from sully.domain.capabilities.installation import ControllersDeployment, read_arguments
from sully.domain.diagnosis.findings import Finding, warning
from sully.domain.diagnosis.rights import RIGHTS, check_rights, questions
from sully.domain.diagnosis.servers import RUN_INSTALL, check_kinds
from sully.install.rbac import lease_rules, rules_of
from sully.install.workload import DEFAULT, NAME, Settings
from sully.machinery.errors import Forbidden
from sully.machinery.gates import Gates, parse_gates

if TYPE_CHECKING:
    from sully.cli.client.session import Session
    from sully.domain.capabilities.offers import Offer


async def check_installed(session: "Session", offered: "Offer") -> Iterable[Finding]:
    """Return the findings about installed controllers."""
    deployment = await installed_deployment(session.transport)
    kinds = check_kinds(offered.own_kinds, installed=deployment is not None)
    if deployment is None:
        return (
            kinds,
            warning("controllers", "not installed, or not readable", RUN_INSTALL),
        )
    namespace = deployment.metadata.namespace
    lease = await lease_finding(session, Key(namespace, NAME), needed=True)
    return (kinds, lease, *await _rights(session, deployment, namespace))


async def _rights(
    session: "Session", deployment: ControllersDeployment, namespace: str
) -> list[Finding]:
    arguments = deployment.arguments
    installation, gates = read_arguments(arguments), _gates(arguments)
    settings = Settings(
        namespace=namespace,
        evictor=installation.evictor,
        controllers=tuple(sorted(installation.only)) if installation.only else DEFAULT,
    )
    needed = {"leader election": list(questions(lease_rules(NAME), namespace))}
    for name in settings.running:
        needed[name] = list(questions(rules_of(name, gates)))
    groups = ("system:serviceaccounts", "system:authenticated")
    user = UserInfo(username=f"system:serviceaccount:{namespace}:{NAME}", groups=groups)
    distinct = sorted({question for listed in needed.values() for question in listed})
    try:
        responses = await asyncio.gather(
            *(may(session.transport, question.attributes(), user) for question in distinct)
        )
    except Forbidden as error:
        remedy = "use a user who may create SubjectAccessReviews"
        return [warning(RIGHTS, f"not checked: {error.message}", remedy)]
    allowed = dict(zip(distinct, responses, strict=True))
    return [
        check_rights(name, [question for question in listed if not allowed[question]])
        for name, listed in needed.items()
    ]


def _gates(arguments: Iterable[str]) -> Gates:
    flag = "--feature-gates="
    gates = next((text[len(flag) :] for text in arguments if text.startswith(flag)), "")
    return parse_gates(gates)
