"""Who is let in: without credentials only health and version answer."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from e2e.raw import Raw, authority, trusting
from sully.server.net.tls import Authority
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
OPEN = ("/healthz", "/livez", "/readyz", "/version", "/livez?verbose", "/readyz?verbose")
CLOSED = (
    "/",
    "/api",
    "/api/v1",
    "/api/v1/namespaces",
    "/apis",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/nothing",
)


@pytest.fixture(scope="module")
def nobody(plane: Process) -> Raw:
    """Return a user who trusts the server but shows nothing."""
    return Raw(plane.url, trusting(authority(plane.kubeconfig)))


@pytest.mark.parametrize("path", OPEN)
def test_without_credentials_these_answer(path: str, nobody: Raw) -> None:
    assert nobody.request("GET", path).code == 200


@pytest.mark.parametrize("path", CLOSED)
def test_without_credentials_these_do_not(path: str, nobody: Raw) -> None:
    answer = nobody.request("GET", path)

    assert answer.code == 401
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_is_written_without_credentials(verb: str, nobody: Raw, raw: Raw) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "intruder"}}

    assert nobody.request(verb, "/api/v1/namespaces", made).code == 401
    assert raw.request("GET", "/api/v1/namespaces/intruder").code == 404


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH"])
def test_who_shows_nothing_is_refused_before_the_body_comes(verb: str, nobody: Raw) -> None:
    assert nobody.announce(verb, "/api/v1/namespaces/default", {}).code == 401


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH"])
def test_who_may_not_is_refused_before_the_body_comes(verb: str, raw: Raw) -> None:
    someone = {"Impersonate-User": "nobody-in-particular"}

    assert raw.announce(verb, "/api/v1/namespaces/default", someone).code == 403


def test_a_certificate_of_another_authority_is_refused(plane: Process, tmp_path: Path) -> None:
    stranger = Authority.open(tmp_path, datetime.now(UTC))
    pair = stranger.client("kubernetes-admin", ["system:masters"], datetime.now(UTC))
    (tmp_path / "crt").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    context = trusting(authority(plane.kubeconfig))
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")

    with pytest.raises((ssl.SSLError, ConnectionError)):
        Raw(plane.url, context).request("GET", "/version")


def test_the_server_can_be_distinguished_from_a_stranger(plane: Process, tmp_path: Path) -> None:
    stranger = Authority.open(tmp_path, datetime.now(UTC))

    with pytest.raises(ssl.SSLCertVerificationError):
        Raw(plane.url, trusting(stranger.pair.certificate)).request("GET", "/version")
