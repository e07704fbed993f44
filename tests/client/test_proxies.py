"""Which proxy the environment names, and for what it does not count."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sully.client.http.proxies import proxy_for
from sully.client.kubeconfig.credentials import AccessError

PROXY = "http://proxy.example:3128"


@dataclass(frozen=True)
class Case:
    url: str
    no_proxy: str = ""
    want: str | None = PROXY
    env: dict[str, str] = field(default_factory=lambda: {"HTTPS_PROXY": PROXY})


CASES = {
    "a server far away": Case("https://api.example.com:6443"),
    "in small letters": Case("https://api.example.com", env={"https_proxy": PROXY}),
    "without a scheme": Case("https://api.example.com", env={"HTTPS_PROXY": "proxy.example:3128"}),
    "of the other scheme": Case("http://api.example.com", want=None),
    "without encryption": Case("http://api.example.com", env={"HTTP_PROXY": PROXY}),
    "none": Case("https://api.example.com", want=None, env={}),
    "this machine by name": Case("https://localhost:6443", want=None),
    "this machine by address": Case("https://127.0.0.9:6443", want=None),
    "this machine by the newer address": Case("https://[::1]:6443", want=None),
    "everything excepted": Case("https://api.example.com", "*", None),
    "the name itself": Case("https://api.example.com", "api.example.com", None),
    "in other letters": Case("https://API.example.com", "api.Example.com", None),
    "its domain": Case("https://api.example.com", "example.com", None),
    "its domain with a dot": Case("https://api.example.com", "other.org, .example.com", None),
    "a dot is not the domain itself": Case("https://example.com", ".example.com"),
    "its domain with a star": Case("https://api.example.com", "*.example.com", None),
    "the end of another name": Case("https://notexample.com", "example.com"),
    "another name": Case("https://api.example.com", "api.example.org"),
    "an address": Case("https://10.1.2.3:6443", "10.1.2.3", None),
    "a network": Case("https://10.1.2.3:6443", "10.0.0.0/8", None),
    "another network": Case("https://11.1.2.3:6443", "10.0.0.0/8"),
    "a network of the newer kind": Case("https://[fd00::5]:6443", "fd00::/8", None),
    "a network for a name": Case("https://api.example.com", "10.0.0.0/8"),
    "no network": Case("https://10.1.2.3", "10.0.0.0/nonsense"),
    "its port": Case("https://api.example.com:6443", "api.example.com:6443", None),
    "another port": Case("https://api.example.com:6443", "api.example.com:443"),
    "the usual port": Case("https://api.example.com", "api.example.com:443", None),
    "a newer address with its port": Case("https://[fd00::5]:6443", "[fd00::5]:6443", None),
    "a newer address": Case("https://[fd00::5]:6443", "fd00::5", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_way(case: Case) -> None:
    env = case.env | ({"NO_PROXY": case.no_proxy} if case.no_proxy else {})

    assert proxy_for(case.url, env) == case.want


def test_one_that_we_do_not_speak_to() -> None:
    with pytest.raises(AccessError, match="HTTPS_PROXY is socks5://x; only http and https work"):
        proxy_for("https://api.example.com", {"HTTPS_PROXY": "socks5://x"})
