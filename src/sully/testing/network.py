"""A network of machines in this computer that a test can partition.

Each machine is a network namespace with one interface in each of the nets, which are bridges that
this process is on too:

    front   10.77.0.0/24   where clients are
    back    10.77.1.0/24   where the machines are among themselves

A program that wants such a network runs inside a namespace itself, see `entered`, so that nothing
of it is left behind whatever happens, and no other network of this computer is changed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

Net = Literal["front", "back"]
Way = Literal["both", "inbound", "outbound"]
NETS: tuple[Net, ...] = ("front", "back")

INSIDE = "SULLY_NETWORK"
"""Set in the environment of a program that `entered` has started."""
HERE = 254
"""Our own address in each net."""
_WAYS_IN = (("unshare", "--net"), ("unshare", "--user", "--map-root-user", "--net"))
SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where `ip` lies; the PATH of an ordinary user may lack it."""
_NEEDED = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
}
_PROBE = "ip link add probe type bridge && ip link add one type veth peer name other"


class NetworkError(Exception):
    """No network can be created here; the message contains what would help."""


def entered(
    command: Sequence[str], *, paths: Sequence[str] = SYSTEM
) -> tuple[list[str], dict[str, str]]:
    """Return how to run a program where it may build networks, and with which environment.

    Programs are also searched in `paths`. Raises `NetworkError` without them or the permissions.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *paths])
    for name, package in _NEEDED.items():
        if shutil.which(name, path=path) is None:
            raise NetworkError(f"there is no `{name}`: install {package}")
    environment = {**os.environ, INSIDE: "yes", "PATH": path}
    errors = []
    for way in _WAYS_IN:
        probe = [*way, "sh", "-c", _PROBE]
        tried = subprocess.run(probe, env=environment, capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return [*way, *command], environment
        errors.append(f"{' '.join(way)}: {tried.stderr.strip()}")
    raise NetworkError(
        f"no network namespaces for us ({'; '.join(errors)}): run it as root, or allow them to"
        " everybody (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000"
        " and kernel.apparmor_restrict_unprivileged_userns=0, as far as they exist); a container"
        " needs the capabilities SYS_ADMIN and NET_ADMIN"
    )


@dataclass(slots=True)
class Host:
    """One machine; `number` counts from 0."""

    number: int
    _holder: "subprocess.Popen[bytes]"
    _cut: set[Net] = field(default_factory=set)

    def address(self, net: Net) -> str:
        """Return where others find it in a net."""
        return f"10.77.{NETS.index(net)}.{self.number + 1}"

    def within(self, *command: str) -> list[str]:
        """Return a command that runs on this machine, and ends with us."""
        enter = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]
        return [*enter, "setpriv", "--pdeathsig", "KILL", *command]

    def cut(self, net: Net, way: Way = "both") -> None:
        """Drop all packets from now on, without an error."""
        self._cut.add(net)
        swallow = ["tc", "qdisc", "replace", "dev"]
        if way != "inbound":
            _run(*self.within(*swallow, net, "root", "blackhole"))
        if way != "outbound":
            _run(*swallow, self.port(net), "root", "blackhole")

    def heal(self) -> None:
        """Undo every cut of this machine."""
        for net in self._cut:
            # Only one direction may have been cut; then the other has nothing to remove.
            _run(*self.within("tc", "qdisc", "del", "dev", net, "root"), must=False)
            _run("tc", "qdisc", "del", "dev", self.port(net), "root", must=False)
        self._cut.clear()

    def port(self, net: Net) -> str:
        """Return the name of our end of its cable."""
        return f"{net}-{self.number}"


class Network:
    """Machines on two nets; use it in a `with` block, inside a program that was `entered`."""

    def __init__(self, size: int) -> None:
        self.hosts: list[Host] = []
        self._size = size
        self._stack = ExitStack()
        self._parted: list[str] = []

    def __enter__(self) -> "Network":
        """Build it."""
        if INSIDE not in os.environ:
            raise NetworkError("this program was not started by `entered`")
        _run("ip", "link", "set", "lo", "up")
        for number, net in enumerate(NETS):
            _run("ip", "link", "add", net, "type", "bridge")
            _run("ip", "address", "add", f"10.77.{number}.{HERE}/24", "dev", net)
            _run("ip", "link", "set", net, "up")
        with ExitStack() as stack:
            for number in range(self._size):
                host = Host(number, stack.enter_context(_namespace()))
                self._connect(host)
                self.hosts.append(host)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the machines."""
        self._stack.close()

    def part(self, one: Host, other: Host, net: Net = "back") -> None:
        """Partition two machines from each other; both still reach all the others."""
        for host in (one, other):
            self._parted.append(host.port(net))
            _run("ip", "link", "set", host.port(net), "type", "bridge_slave", "isolated", "on")

    def heal(self) -> None:
        """Undo everything."""
        for port in self._parted:
            _run("ip", "link", "set", port, "type", "bridge_slave", "isolated", "off")
        self._parted.clear()
        for host in self.hosts:
            host.heal()

    def _connect(self, host: Host) -> None:
        _run(*host.within("ip", "link", "set", "lo", "up"))
        for net in NETS:
            port, inside = host.port(net), str(host._holder.pid)
            peer = ("peer", "name", net, "netns", inside)
            _run("ip", "link", "add", port, "type", "veth", *peer)
            _run("ip", "link", "set", port, "master", net, "up")
            _run(*host.within("ip", "address", "add", f"{host.address(net)}/24", "dev", net))
            _run(*host.within("ip", "link", "set", net, "up"))


@contextmanager
def _namespace() -> Iterator["subprocess.Popen[bytes]"]:
    """Create a network namespace that exists until our end of a pipe is closed."""
    # It prints a line as soon as it runs inside, and ends when our end of the pipe is closed.
    command = ["unshare", "--net", "sh", "-c", "echo; exec cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        if holder.stdout is None or not holder.stdout.readline():
            raise NetworkError("unshare --net failed inside a namespace")
        yield holder


def _run(*command: str, must: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if must and done.returncode:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
