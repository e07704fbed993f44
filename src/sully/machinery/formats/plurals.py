"""How a number of things is written: 1 pod, 2 pods."""


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
