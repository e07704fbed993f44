"""What users and drivers do: the operations of a history that are requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator import fleet
from simulator.operations import Operation
from sully.client.transport import TRANSIENT, Key, Kind, Transport
from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.runtime.clock import Clock

Obj = dict[str, Any]
Args = dict[str, Any]
ATTEMPTS = 30


class User:
    """Executes operations, and retries while the server cannot be reached."""

    def __init__(
        self, api: Transport, clock: Clock, devices: int, report: Callable[[str, str], None]
    ) -> None:
        self._api = api
        self._clock = clock
        self._devices = devices
        self._report = report
        self._executors: dict[str, Callable[[Args], Any]] = {
            "create rule": self._create_rule,
            "delete rule": lambda args: api.delete(fleet.RULES, Key("", args["name"])),
            "pause rule": self._pause_rule,
            "create workload": self._create_workload,
            "create pod": self._create_pod,
            "delete pod": lambda args: api.delete(fleet.PODS, _key(args)),
            "scale": self._scale,
            "flip health": self._flip_health,
            "create policy": lambda args: api.create(fleet.POLICIES, fleet.policy(args["name"])),
        }

    async def execute(self, operation: Operation) -> None:
        """Execute an operation."""
        for attempt in range(ATTEMPTS):
            try:
                await self._executors[operation.name](dict(operation.args))
            except (NotFound, AlreadyExists):
                return
            except (Conflict, *TRANSIENT):
                await self._clock.sleep(min(20.0, 0.5 * 2**attempt))
            except Exception as error:  # noqa: BLE001 - every operation is valid
                self._report("crash", f"{operation.name} failed: {error!r}")
                return
            else:
                return

    async def _create_rule(self, args: Args) -> None:
        await self._api.create(fleet.RULES, fleet.rule(args.pop("name"), **args))

    async def _pause_rule(self, args: Args) -> None:
        value = "true" if args["paused"] else None
        patch = {"metadata": {"annotations": {"sully.dev/paused": value}}}
        await self._api.patch(fleet.RULES, Key("", args["name"]), patch)

    async def _create_workload(self, args: Args) -> None:
        name, least = args["name"], args["budget"]
        if least is not None:
            await _ensure(self._api, fleet.BUDGETS, fleet.budget(name, least))
        body = fleet.replica_set(name, args["kind"], args["replicas"])
        await self._api.create(fleet.REPLICA_SETS, body)

    async def _create_pod(self, args: Args) -> None:
        spec = fleet.pod_spec(template=args["kind"])
        await self._api.create(fleet.PODS, fleet.pod(args["name"], spec))

    async def _scale(self, args: Args) -> None:
        patch = {"spec": {"replicas": args["replicas"]}}
        await self._api.patch(fleet.REPLICA_SETS, _key(args), patch)

    async def _flip_health(self, args: Args) -> None:
        body = fleet.gpu_slice(args["node"], self._devices, args["tainted"], args["effect"])
        stored = await self._api.get(fleet.SLICES, Key("", body["metadata"]["name"]))
        body["spec"]["pool"]["generation"] = stored["spec"]["pool"]["generation"] + 1
        body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        await self._api.update(fleet.SLICES, body)


def _key(args: Args) -> Key:
    return Key(fleet.NAMESPACE, args["name"])


async def _ensure(api: Transport, kind: Kind[Obj], body: Obj) -> None:
    try:
        await api.create(kind, body)
    except AlreadyExists:
        return
