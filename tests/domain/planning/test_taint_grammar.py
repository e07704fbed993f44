"""What is a taint on a command line, and what is not."""

from __future__ import annotations

import pytest

from sully.domain.planning.rules.taint_grammar import (
    CLUSTER_EFFECTS,
    TaintSyntaxError,
    TaintToAdd,
    TaintToRemove,
    is_taint,
    parse_taint,
)

READ = {
    "key:NoExecute": TaintToAdd("key", "", "NoExecute"),
    "example.com/key=value:NoSchedule": TaintToAdd("example.com/key", "value", "NoSchedule"),
    "key=:None": TaintToAdd("key", "", "None"),
    "key=a=b:NoExecute": TaintToAdd("key", "a=b", "NoExecute"),
    "key-": TaintToRemove("key"),
    "key:NoExecute-": TaintToRemove("key", "NoExecute"),
    "key=value:NoExecute-": TaintToRemove("key", "NoExecute"),
    "my-key-": TaintToRemove("my-key"),
}


@pytest.mark.parametrize(("text", "want"), READ.items(), ids=READ)
def test_parse(text: str, want: TaintToAdd | TaintToRemove) -> None:
    assert parse_taint(text) == want


REFUSED = {
    "no effect": ("key=value", "no effect"),
    "an effect of clusters": ("key:NoSelect", 'unknown effect "NoSelect"'),
    "an effect in small letters": ("key:noexecute", 'did you mean "NoExecute"'),
    "an effect cut short": ("key:NoExec", 'did you mean "NoExecute"'),
    "an effect with a slip, to remove": ("key:NoShedule-", 'did you mean "NoSchedule"'),
    "no key": (":NoExecute", "no key"),
    "no key to remove": ("-", "no key"),
    "an unknown effect to remove": ("key:Never-", 'unknown effect "Never"'),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(TaintSyntaxError, match=message):
        parse_taint(text)


def test_clusters_have_effects_of_their_own() -> None:
    assert parse_taint("k:NoSelectIfNew", CLUSTER_EFFECTS) == TaintToAdd("k", "", "NoSelectIfNew")


@pytest.mark.parametrize("text", [item for item in READ if item.count("=") < 2])
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
    assert TaintToRemove("k").matches("k", "NoExecute")
    assert TaintToRemove("k", "NoSchedule").matches("k", "NoSchedule")
    assert not TaintToRemove("k", "NoSchedule").matches("k", "NoExecute")
    assert not TaintToRemove("k").matches("other", "NoExecute")
