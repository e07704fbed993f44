"""A watch whose resource version the server has forgotten is listed again, without noise."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from typing import Any

from kube.control_plane import poll
from kube.process import Foreign
from sully.testing.remote import controllers

FLAGS = ("--lease", "default/expired", "--log-format", "json", "--log-level", "debug")
EXPIRED = re.compile(r"^sully_informer_expired_total\{.*\} ([1-9])", re.MULTILINE)


def test_controllers_list_again(there: Foreign) -> None:
    with controllers(there.kubeconfig, *FLAGS, "--metrics-listen", "127.0.0.1:0") as process:
        metrics = json.loads(process.wait_for("serving metrics"))["url"]
        process.wait_for("leading since")
        _write_much(there)
        started = len(process.output)
        there.forget_versions()
        process.wait_for("watch expired, relisting")
        poll(lambda: EXPIRED.search(_page(metrics)) is not None)
        assert process.stop() == 0
        process.wait_for('"event":"stopped"')

    entries = [json.loads(line) for line in process.output[started:]]
    assert any(entry["event"] == "watch expired, relisting" for entry in entries)
    assert _noise(entries) == []


def _write_much(there: Foreign) -> None:
    """Write objects that are not watched: all watches stay at older versions."""
    admin = there.admin()
    for number in range(20):
        name = f"expired-{os.getpid()}-{number}"
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        admin.request("POST", "/api/v1/namespaces/default/configmaps", made)


def _page(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read(), "utf-8")


def _noise(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is logged loudly about versions that have expired, and every traceback."""
    return [
        entry
        for entry in entries
        if "exception" in entry
        or (entry["level"] != "debug" and re.search("too old|expired", json.dumps(entry)))
    ]
