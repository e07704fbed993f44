"""What is a taint on a command line, and what is not."""

from __future__ import annotations

import pytest

from sully.domain.planning.taintgrammar import (
    CLUSTER_EFFECTS,
    TaintSyntaxError,
    Unwanted,
    Wanted,
    is_taint,
    parse_taint,
)

READ = {
    "key:NoExecute": Wanted("key", "", "NoExecute"),
    "example.com/key=value:NoSchedule": Wanted("example.com/key", "value", "NoSchedule"),
    "key=:None": Wanted("key", "", "None"),
    "key=a=b:NoExecute": Wanted("key", "a=b", "NoExecute"),
    "key-": Unwanted("key"),
    "key:NoExecute-": Unwanted("key", "NoExecute"),
    "key=value:NoExecute-": Unwanted("key", "NoExecute"),
    "my-key-": Unwanted("my-key"),
}


@pytest.mark.parametrize(("text", "want"), READ.items(), ids=READ)
def test_parse(text: str, want: Wanted | Unwanted) -> None:
    assert parse_taint(text) == want


REFUSED = {
    "no effect": ("key=value", "no effect"),
    "an effect of clusters": ("key:NoSelect", "unknown effect 'NoSelect'"),
    "an effect in small letters": ("key:noexecute", 'did you mean "NoExecute"'),
    "no key": (":NoExecute", "no key"),
    "no key to remove": ("-", "no key"),
    "an unknown effect to remove": ("key:Never-", "unknown effect 'Never'"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(TaintSyntaxError, match=message):
        parse_taint(text)


def test_clusters_have_effects_of_their_own() -> None:
    assert parse_taint("k:NoSelectIfNew", CLUSTER_EFFECTS) == Wanted("k", "", "NoSelectIfNew")


@pytest.mark.parametrize("text", [each for each in READ if each.count("=") < 2])
def test_what_is_written_is_read_again(text: str) -> None:
    read = parse_taint(text)

    assert parse_taint(str(read)) == read


WORDS = {
    "a:NoExecute": True,
    "a-": True,
    "a=b": True,
    "gpu.example.com/pool/gpu-0": False,
    "*": False,
}


@pytest.mark.parametrize(("word", "want"), WORDS.items(), ids=WORDS)
def test_words(word: str, want: bool) -> None:
    assert is_taint(word) is want


def test_removal_means_one_effect_or_all() -> None:
    assert Unwanted("k").means("k", "NoExecute")
    assert Unwanted("k", "NoSchedule").means("k", "NoSchedule")
    assert not Unwanted("k", "NoSchedule").means("k", "NoExecute")
    assert not Unwanted("k").means("other", "NoExecute")
