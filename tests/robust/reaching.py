"""Who reaches whom in a network that is cut in several ways; prints it as JSON.

A program of its own, because it must run in a namespace; test_network.py starts it.
"""

import json
import subprocess
import sys
from collections.abc import Callable

from sully.testing.network import Host, Net, Network
from sully.testing.patience import PATIENCE

PORT = "7777"
SECONDS = 5.0
"""How long an answer is awaited on a way that should be cut; all are asked at the same time."""
CUTS = {
    "nothing": frozenset[str](),
    "front of one": frozenset(("client > one",)),
    # A machine always reaches itself, and the others each other.
    "back of one": frozenset(("two > one", "one > three")),
    # What is asked and what is answered both have to come through.
    "inbound": frozenset(("two > one", "one > three")),
    "outbound": frozenset(("two > one", "one > three")),
    "one from two": frozenset(("two > one",)),
}
"""Which ways each cut takes away."""
ECHO = f"""
import socket
served = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
served.bind(("0.0.0.0", {PORT}))
print("ready", flush=True)
while True:
    data, who = served.recvfrom(100)
    served.sendto(data, who)
"""
ASK = f"""
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(float(sys.argv[2]))
    asking.sendto(b"there?", (sys.argv[1], {PORT}))
    try:
        sys.exit(asking.recv(100) != b"there?")
    except TimeoutError:
        sys.exit(1)
"""


def asking(
    source: Host | None, target: Host, net: Net, *, seconds: float
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ASK, target.address(net), str(seconds)]
    return subprocess.Popen(source.within(*command) if source else command)


def main() -> None:
    with Network(3) as network:
        one, two, three = network.hosts
        serving = [
            subprocess.Popen(
                host.within(sys.executable, "-c", ECHO), stdout=subprocess.PIPE, text=True
            )
            for host in network.hosts
        ]
        for item in serving:
            assert item.stdout is not None
            item.stdout.readline()
        ways: dict[str, tuple[Host | None, Host, Net]] = {
            "client > one": (None, one, "front"),
            "two > one": (two, one, "back"),
            "one > three": (one, three, "back"),
            "one > one": (one, one, "back"),
            "two > three": (two, three, "back"),
        }
        cuts: dict[str, Callable[[], None]] = {
            "nothing": lambda: None,
            "front of one": lambda: one.cut("front"),
            "back of one": lambda: one.cut("back"),
            "inbound": lambda: one.cut("back", "inbound"),
            "outbound": lambda: one.cut("back", "outbound"),
            "one from two": lambda: network.part(one, two),
        }
        result = {}
        for name, cut in cuts.items():
            cut()
            asked = {
                way: asking(*hosts, seconds=SECONDS if way in CUTS[name] else PATIENCE)
                for way, hosts in ways.items()
            }
            result[name] = {way: child.wait() == 0 for way, child in asked.items()}
            network.heal()
        for item in serving:
            item.kill()
            item.wait()
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
