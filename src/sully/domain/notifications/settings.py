"""The configuration file of notifications: who gets which, in which form.

The file has no secrets: it names the files that have them. A user who may write it decides where
requests go, so it belongs to the administrator, as the flags do; objects of the API cannot
change it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from string import Template
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from sully.domain.notifications.kinds import SUMMARIES
from sully.machinery.formats.addresses import REFUSED_ADDRESS, is_refused

WEBHOOK: Final = "Webhook"
SLACK: Final = "Slack"
FIELDS: Final = frozenset(("kind", "summary", "count", "lines"))
"""What a template may use."""
DEFAULT_TEMPLATE: Final = "$summary ($count)\n$lines"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class SettingsError(ValueError):
    """The configuration cannot be used."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """A place where notifications are sent."""

    name: str
    url: str = ""
    url_file: str = ""
    """The file with the URL, for one that is secret itself."""
    format: str = WEBHOOK
    token_file: str = ""
    ca_file: str = ""
    kinds: frozenset[str] = frozenset(SUMMARIES)
    template: Template = msgspec.field(default_factory=lambda: Template(DEFAULT_TEMPLATE))
    group_wait: timedelta = timedelta(seconds=10)
    """How long the first notification waits for others."""
    interval: timedelta = timedelta(minutes=1)
    """The least time between two sendings."""
    repeat: timedelta = timedelta(hours=1)
    """For how long the same notification about the same object is not repeated."""


class _File(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    url: str = ""
    url_file: str = ""
    format: str = WEBHOOK
    bearer_token_file: str = ""
    ca_file: str = ""
    kinds: list[str] | None = None
    template: str = DEFAULT_TEMPLATE
    group_wait_seconds: int = 10
    interval_seconds: int = 60
    repeat_seconds: int = 3600


class _Files(msgspec.Struct, forbid_unknown_fields=True):
    receivers: list[_File]


def parse_settings(document: Any) -> tuple[Receiver, ...]:
    """Read the content of the file; raise SettingsError with what is wrong and where."""
    try:
        files = msgspec.convert(document, _Files)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from error
    receivers = tuple(
        _receiver(file, f"receivers[{at}]") for at, file in enumerate(files.receivers)
    )
    names = [receiver.name for receiver in receivers]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f'receivers: the name "{name}" is used twice')
    return receivers


def _receiver(file: _File, at: str) -> Receiver:
    _check(_NAME.fullmatch(file.name), f'{at}.name: invalid name "{file.name}" (a DNS label)')
    _check(
        bool(file.url) != bool(file.url_file), f"{at}: set either url or urlFile, not both or none"
    )
    if file.url:
        problem = url_problem(file.url)
        _check(not problem, f"{at}.url: {problem}")
    formats = (WEBHOOK, SLACK)
    _check(
        file.format in formats,
        f'{at}.format: unknown value "{file.format}" (one of: {", ".join(formats)})',
    )
    unknown = sorted(set(file.kinds or ()) - SUMMARIES.keys())
    _check(
        not unknown,
        f"{at}.kinds: unknown value {', '.join(unknown)} (one of: {', '.join(SUMMARIES)})",
    )
    for name in ("group_wait_seconds", "interval_seconds", "repeat_seconds"):
        _check(0 <= getattr(file, name) <= 86400, f"{at}: times are between 0 and 86400 seconds")
    return Receiver(
        name=file.name,
        url=file.url,
        url_file=file.url_file,
        format=file.format,
        token_file=file.bearer_token_file,
        ca_file=file.ca_file,
        kinds=frozenset(SUMMARIES if file.kinds is None else file.kinds),
        template=_template(file.template, at),
        group_wait=timedelta(seconds=file.group_wait_seconds),
        interval=timedelta(seconds=file.interval_seconds),
        repeat=timedelta(seconds=file.repeat_seconds),
    )


def url_problem(url: str) -> str:
    """Return why nothing is sent to a URL; empty if it can be used.

    Without TLS only to the same machine: notifications name objects, and carry a token.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "invalid URL"
    if not host or parts.scheme not in ("http", "https"):
        return "must be an https URL"
    if parts.username or parts.password:
        return "must not contain credentials: use bearerTokenFile"
    if is_refused(host):
        return REFUSED_ADDRESS
    if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        return "must be an https URL, or http to localhost"
    return ""


def _template(text: str, at: str) -> Template:
    template = Template(text)
    _check(template.is_valid(), f"{at}.template: invalid (write $$ for a dollar sign)")
    unknown = sorted(set(template.get_identifiers()) - FIELDS)
    _check(
        not unknown,
        f"{at}.template: unknown field {', '.join(unknown)} (one of: {', '.join(sorted(FIELDS))})",
    )
    return template


def _check(condition: object, problem: str) -> None:
    if not condition:
        raise SettingsError(problem)
