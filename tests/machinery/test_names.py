"""Formats of names: what passes, and the words for what does not."""

from collections.abc import Callable

import pytest

from sully.machinery.formats.names import (
    c_identifier_problems,
    caseless_subdomain_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
    path_segment_problems,
)

Check = Callable[[str], list[str]]
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    r" validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'Example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with"
    " an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
TWO_SLASHES = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used"
    " for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain"
    " prefix and '/' (e.g. 'example.com/MyName')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of"
    " alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for"
    " validation is '[A-Za-z_][A-Za-z0-9_]*')"
)

CASES: dict[str, tuple[Check, str, list[str]]] = {
    "label": (dns_label_problems, "a-1", []),
    "longest label": (dns_label_problems, "a" * 63, []),
    "label too long": (dns_label_problems, "a" * 64, ["must be no more than 63 characters"]),
    "label with dots": (dns_label_problems, "a.b", ["must not contain dots"]),
    "label in upper case": (dns_label_problems, "A", [LABEL]),
    "label ending in a dash": (dns_label_problems, "a-", [LABEL]),
    "no label": (dns_label_problems, "", [LABEL]),
    "label with a line break": (dns_label_problems, "a\n", [LABEL]),
    "label that is too long and wrong": (
        dns_label_problems,
        "ä" * 32,
        ["must be no more than 63 characters", LABEL],
    ),
    "subdomain": (dns_subdomain_problems, "a.b-c.1", []),
    "longest subdomain": (dns_subdomain_problems, "a" * 253, []),
    "subdomain too long": (
        dns_subdomain_problems,
        "a" * 254,
        ["must be no more than 253 characters"],
    ),
    "prefix of a key too long": (
        label_key_problems,
        "a" * 254 + "/b",
        ["prefix part must be no more than 253 bytes"],
    ),
    "upper case where it is tolerated": (caseless_subdomain_problems, "Example.com", []),
    "no subdomain even in lower case": (caseless_subdomain_problems, "D_", [CASELESS]),
    "subdomain of any case too long": (
        caseless_subdomain_problems,
        "A" * 254,
        ["must be no more than 253 bytes"],
    ),
    "subdomain with two dots": (dns_subdomain_problems, "a..b", [SUBDOMAIN]),
    "subdomain with an underscore": (dns_subdomain_problems, "a_b", [SUBDOMAIN]),
    "key": (label_key_problems, "Some_key.1", []),
    "key with prefix": (label_key_problems, "example.com/key", []),
    "key without a name": (
        label_key_problems,
        "example.com/",
        ["name part must be non-empty", NAME_PART],
    ),
    "empty key": (label_key_problems, "", ["name part must be non-empty", NAME_PART]),
    "key with an empty prefix": (label_key_problems, "/a", ["prefix part must be non-empty"]),
    "key with a bad prefix": (label_key_problems, "A/a", [f"prefix part {SUBDOMAIN}"]),
    "key too long": (label_key_problems, "a" * 64, ["name part must be no more than 63 bytes"]),
    "key with two slashes": (label_key_problems, "a/b/c", [TWO_SLASHES]),
    "key with a space": (label_key_problems, "a b", [NAME_PART]),
    "empty value": (label_value_problems, "", []),
    "value": (label_value_problems, "A_b-c.d", []),
    "value too long": (label_value_problems, "a" * 64, ["must be no more than 63 bytes"]),
    "value with a slash": (label_value_problems, "a/b", [VALUE]),
    "value ending in a dot": (label_value_problems, "a.", [VALUE]),
    "identifier": (c_identifier_problems, "_a1", []),
    "identifier that begins with a digit": (c_identifier_problems, "1a", [IDENTIFIER]),
    "empty identifier": (c_identifier_problems, "", [IDENTIFIER]),
    "segment": (path_segment_problems, "a..b", []),
    "here": (path_segment_problems, ".", ["may not be '.'"]),
    "up": (path_segment_problems, "..", ["may not be '..'"]),
    "segment with slash and percent": (
        path_segment_problems,
        "a/b%c",
        ["may not contain '/'", "may not contain '%'"],
    ),
}


@pytest.mark.parametrize(("check", "name", "want"), CASES.values(), ids=CASES.keys())
def test_names(check: Check, name: str, want: list[str]) -> None:
    assert check(name) == want


def test_names_of_objects_count_characters() -> None:
    problems = dns_subdomain_problems("a" * 254, unit="characters")

    assert problems == ["must be no more than 253 characters"]
