"""The packages of Debian in the image: all pinned, and what a list of files contains of them."""

from __future__ import annotations

import re

from release.debian import BUILDAH, IMAGE, PINS, pins


def test_a_line_names_package_version_and_hash() -> None:
    text = "aa  libc6_2.36-9_amd64.deb\nbb  zlib1g_1%3a1.2.13_amd64.deb\n"

    assert pins(text) == {"libc6": ("2.36-9", "aa"), "zlib1g": ("1:1.2.13", "bb")}


def test_every_package_of_the_image_is_pinned() -> None:
    pinned = pins(PINS.read_text())

    assert pinned.keys() == {*IMAGE, *BUILDAH}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for _, digest in pinned.values())
