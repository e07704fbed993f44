"""Take the pictures of the dashboard for README and guides, from a running `sully up --demo`.

They are not part of `make generate`: no two runs have the same pods, and a picture is not compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

from chromium import chromium, find_chromium
from sully.testing.cluster import process

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/images"
PICTURES = {
    "dashboard-fleet": "fleet",
    "dashboard-device": "device?id=gpu.sully.dev/worker-0001/gpu-0",
    "dashboard-evictions": "evictions",
}


def main() -> int:
    """Write all pictures."""
    program = find_chromium()
    if program is None:
        print("no Chromium: tools/fetch-chromium fetches one on Debian", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with process("--demo", "--store", "memory") as up, chromium(program) as browser:
        page = browser.new_page(ignore_https_errors=True, viewport={"width": 1200, "height": 720})
        page.set_default_timeout(120_000)
        page.goto(up.dashboard)
        # The last stage of the demo.
        page.get_by_role("button", name="Evicting 2").wait_for()
        for name, where in PICTURES.items():
            page.goto(f"{up.url}/dashboard/#/{where}")
            page.wait_for_selector("h1")
            page.locator(".loading").first.wait_for(state="detached")
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"written: docs/images/{name}.png")
        page.goto(f"{up.url}/dashboard/#/fleet?text=worker-0000")
        page.get_by_role("button", name="Select all shown").click()
        page.get_by_role("button", name="Drain", exact=True).click()
        page.wait_for_selector("dialog .headline")
        page.screenshot(path=FOLDER / "dashboard-plan.png")
        print("written: docs/images/dashboard-plan.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
