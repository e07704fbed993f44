"""Who reaches whom in a network that is cut in several ways; prints it as JSON.

A program of its own, because it must run in a namespace; test_network.py starts it.
"""

import json
import subprocess
import sys
from collections.abc import Callable

from sully.testing.network import Host, Net, Network

PORT = "7777"
SECONDS = 2.0
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


def reaches(source: Host | None, target: Host, net: Net) -> bool:
    command = [sys.executable, "-c", ASK, target.address(net)]
    return subprocess.run(source.within(*command) if source else command).returncode == 0


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
            found[name] = {
                "client > one": reaches(None, one, "front"),
                "two > one": reaches(two, one, "back"),
                "one > three": reaches(one, three, "back"),
                "one > one": reaches(one, one, "back"),
                "two > three": reaches(two, three, "back"),
            }
            network.heal()
        for each in serving:
            each.kill()
            each.wait()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
