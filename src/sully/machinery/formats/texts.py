"""Texts that must fit into a field."""


def truncated(text: str, most: int) -> str:
    """Return the beginning of a text, of so many bytes at most, without half a character."""
    return text.encode()[:most].decode(errors="ignore")
