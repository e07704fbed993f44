"""Who reaches whom in a network that is cut in several ways; prints it as JSON.

A program of its own, because it must run in a namespace; test_network.py starts it.
"""

import json
import subprocess
import sys
from collections.abc import Callable

from sully.testing.network import Host, Net, Network

PORT = "7777"
SECONDS = 5.0
"""After how long without an answer a way is cut; all are asked at the same time."""
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
    asking.settimeout({SECONDS})
    asking.sendto(b"there?", (sys.argv[1], {PORT}))
    try:
        sys.exit(asking.recv(100) != b"there?")
    except TimeoutError:
        sys.exit(1)
"""


def asking(source: Host | None, target: Host, net: Net) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ASK, target.address(net)]
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
        for each in serving:
            assert each.stdout is not None
            each.stdout.readline()
        cuts: dict[str, Callable[[], None]] = {
            "nothing": lambda: None,
            "front of one": lambda: one.cut("front"),
            "back of one": lambda: one.cut("back"),
            "inbound": lambda: one.cut("back", "inbound"),
            "outbound": lambda: one.cut("back", "outbound"),
            "one from two": lambda: network.part(one, two),
        }
        found = {}
        for name, cut in cuts.items():
            cut()
            ways = {
                "client > one": asking(None, one, "front"),
                "two > one": asking(two, one, "back"),
                "one > three": asking(one, three, "back"),
                "one > one": asking(one, one, "back"),
                "two > three": asking(two, three, "back"),
            }
            found[name] = {way: child.wait() == 0 for way, child in ways.items()}
            network.heal()
        for each in serving:
            each.kill()
            each.wait()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
