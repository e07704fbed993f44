"""The machines: on each a member of etcd and a replica, in a network with partitions.

A replica talks to all members, its own first. It listens in the net of the clients only by its
address there; losing the other net cuts both programs of a machine off from all other machines.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from etcds import Etcd, Member
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.testing.network import Host, Network

SIZE = 3
PORT = 6443
IDENTITY = ("ca.crt", "ca.key", "sa.key")


@dataclass(slots=True)
class Machine:
    """A machine and what runs on it."""

    host: Host
    member: Member
    data: Path
    flags: tuple[str, ...]
    replica: subprocess.Popen[bytes] | None = None
    last: str = "_none_"
    """What the name of the newest replica contains, also after its end."""
    names: set[str] = field(default_factory=set)
    """The same of all that ever ran here."""
    ended: str = ""
    """How a replica ended that was not stopped."""

    @property
    def name(self) -> str:
        """Return its name in reports."""
        return "abc"[self.host.number]

    @property
    def url(self) -> str:
        """Return where clients find the replica."""
        return f"https://{self.host.address('front')}:{PORT}"

    @property
    def log(self) -> Path:
        """Return the log file of the replica."""
        return self.data.with_suffix(".log")

    def start(self) -> None:
        """Run a replica."""
        command = [sys.executable, "-m", "sully.cli.main", "up", "--data-dir", str(self.data)]
        command += [
            "--default-evictions-per-second",
            "0",
            "--listen",
            f"0.0.0.0:{PORT}",
            "--tls-san",
            self.host.address("front"),
        ]
        with open(self.log, "ab") as log:
            self.replica = subprocess.Popen(
                self.host.within(*command, *self.flags), stdout=log, stderr=log
            )
        self.last = f"_{self.replica.pid}_"
        self.names.add(self.last)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the replica."""
        if self.replica is not None:
            self._check(self.replica)
            self.replica.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the replica: kill it, or stop it gracefully."""
        if self.replica is not None:
            self.send(number)
            # A suspended process does not handle the signal.
            self.replica.send_signal(signal.SIGCONT)
            self.replica.wait()
            self.replica = None

    def leads(self, holder: str) -> bool:
        """Report whether the holder of a lease is the replica that runs here now."""
        return self.replica is not None and self.last in holder

    def led(self, holder: str) -> bool:
        """Report whether the holder of a lease is a replica that ran here some time."""
        return any(name in holder for name in self.names)

    def _check(self, replica: subprocess.Popen[bytes]) -> None:
        code = replica.poll()
        if code is not None:
            last = self.log.read_text(errors="replace").splitlines()[-5:]
            self.ended = f"the replica on {self.name} ended by itself with {code}: {last}"

    def exit_problem(self) -> str:
        """Return how the replica ended by itself, if it did."""
        if self.replica is not None and not self.ended:
            self._check(self.replica)
        return self.ended


class Machines:
    """All of them; use it in a `with` block, inside a program that may build networks."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.network = Network(SIZE)
        self.all: list[Machine] = []
        self.etcd = Etcd(size=SIZE)
        self._folder = folder
        self._flags = flags
        self._stack = ExitStack()

    def __enter__(self) -> Machines:
        """Build the machines and run etcd on them; no replica runs yet."""
        with ExitStack() as stack:
            stack.enter_context(self.network)
            self.etcd.hosts = self.network.hosts
            stack.enter_context(self.etcd)
            stack.callback(self._end)
            pairs = zip(self.network.hosts, self.etcd.members, strict=True)
            self.all = [self._machine(host, member) for host, member in pairs]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End everything."""
        self._stack.close()

    def _machine(self, host: Host, member: Member) -> Machine:
        mine = self.etcd.members[host.number :] + self.etcd.members[: host.number]
        store = "etcd://" + ",".join(m.endpoint for m in mine)
        data = self._folder / f"replica-{host.number}"
        data.mkdir()
        return Machine(host, member, data, ("--store", store, *self._flags))

    def join(self, machine: Machine) -> None:
        """Copy the identity of the first machine, and run a replica."""
        for name in IDENTITY:
            shutil.copy(self.all[0].data / name, machine.data / name)
        machine.start()

    def access(self, machine: Machine) -> Access:
        """Return the admin's access to a replica; every one accepts it."""
        access = load_kubeconfig([self.all[0].data / "kubeconfig"], required=True).access()
        return replace(access, server=machine.url)

    def _end(self) -> None:
        for machine in self.all:
            machine.end()
