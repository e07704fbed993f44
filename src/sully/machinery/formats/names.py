"""Formats of names, label keys and label values, with the texts clients know.

Each function returns what is wrong with a value: an empty list means nothing.
"""

import re

from sully.machinery.memo import memoized

DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(DNS_LABEL)
DNS_SUBDOMAIN = DNS_LABEL + r"(\." + DNS_LABEL + ")*"
_DNS_SUBDOMAIN = re.compile(DNS_SUBDOMAIN)
QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED = re.compile(QUALIFIED)
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_VALUE = re.compile(LABEL_VALUE)
C_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER = re.compile(C_IDENTIFIER)

_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)


def _with_regex(text: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def dns_label_problems(value: str, *, unit: str = "characters") -> list[str]:
    """Check a lower-case RFC 1123 label of at most 63 bytes.

    Kubernetes has two of these checks, which differ in how they call what they count: formats that
    are declared with the type report "bytes", all others "characters".
    """
    problems = []
    if len(value.encode()) > 63:
        problems.append(f"must be no more than 63 {unit}")
    if not _DNS_LABEL.fullmatch(value):
        if _DNS_SUBDOMAIN.fullmatch(value):
            problems.append("must not contain dots")
        else:
            problems.append(
                _with_regex(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters"
                    " or '-', and must start and end with an alphanumeric character",
                    DNS_LABEL,
                    "my-name",
                    "123-abc",
                )
            )
    return problems


_RFC1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def rfc1035_label_problems(value: str) -> list[str]:
    """Check a lower-case RFC 1035 label of at most 63 bytes, which starts with a letter."""
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 characters")
    if not _RFC1035_LABEL.fullmatch(value):
        problems.append(
            _with_regex(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start"
                " with an alphabetic character, and end with an alphanumeric character",
                _RFC1035_LABEL.pattern,
                "my-name",
                "abc-123",
            )
        )
    return problems


def dns_subdomain_problems(value: str, *, unit: str = "characters") -> list[str]:
    """Check a lower-case RFC 1123 subdomain of at most 253 bytes; for `unit` see the label."""
    problems = []
    if len(value.encode()) > 253:
        problems.append(f"must be no more than 253 {unit}")
    if not _DNS_SUBDOMAIN.fullmatch(value):
        problems.append(
            _with_regex(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
                " '-' or '.', and must start and end with an alphanumeric character",
                DNS_SUBDOMAIN,
                "example.com",
            )
        )
    return problems


def caseless_subdomain_problems(value: str) -> list[str]:
    """Check an RFC 1123 subdomain that may have upper-case letters, as a declared format."""
    problems = []
    if len(value.encode()) > 253:
        problems.append("must be no more than 253 bytes")
    if not _DNS_SUBDOMAIN.fullmatch(value.lower()):
        problems.append(
            _with_regex(
                "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and"
                " must start and end with an alphanumeric character",
                DNS_SUBDOMAIN,
                "Example.com",
            )
        )
    return problems


# Objects have the same few keys; the list is never changed.
@memoized(8192)
def label_key_problems(value: str) -> list[str]:
    """Check `[prefix/]name`, as label keys, taint keys and condition types are written."""
    parts = value.split("/")
    if len(parts) > 2:
        text = _with_regex(
            f"a valid label key {_QUALIFIED_TEXT}", QUALIFIED, "MyName", "my.name", "123-abc"
        )
        return [f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            prefix_problems = dns_subdomain_problems(parts[0], unit="bytes")
            problems += [f"prefix part {text}" for text in prefix_problems]
    return problems + _name_part_problems(parts[-1])


def _name_part_problems(name: str) -> list[str]:
    problems = []
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        problems.append(
            _with_regex(f"name part {_QUALIFIED_TEXT}", QUALIFIED, "MyName", "my.name", "123-abc")
        )
    return problems


_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def finalizer_problems(name: str) -> list[str]:
    """Check a finalizer of a built-in kind: a name of Kubernetes' own, or one with a domain."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return ["name is neither a standard finalizer name nor is it fully qualified"]


def label_value_problems(value: str) -> list[str]:
    """Check a label value: empty or a short word."""
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if not _LABEL_VALUE.fullmatch(value):
        problems.append(
            _with_regex(
                f"a valid label must be an empty string or {_QUALIFIED_TEXT.removeprefix('must ')}",
                LABEL_VALUE,
                "MyValue",
                "my_value",
                "12345",
            )
        )
    return problems


def c_identifier_problems(value: str) -> list[str]:
    """Check a C identifier, but not its length."""
    if _C_IDENTIFIER.fullmatch(value):
        return []
    return [
        _with_regex(
            "a valid C identifier must start with alphabetic character or '_', followed by a string"
            " of alphanumeric characters or '_'",
            C_IDENTIFIER,
            "my_name",
            "MY_NAME",
            "MyName",
        )
    ]


def path_segment_problems(name: str) -> list[str]:
    """Check that a name is valid in a URL path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in ("/", "%") if char in name]
