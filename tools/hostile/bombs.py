"""Requests made to cost much: each is small for its effect on a careless server.

A table of `Bomb`s, sent by tests/robust/inputs and by the long run. Bodies are made when they are
used: together they are large.
"""

import json
from typing import Any
from urllib.parse import quote

from hostile.floods import FLOODS
from hostile.requests import (
    APPLY,
    CLASSES,
    CONFIG_MAPS,
    JSON_PATCH,
    MEBI,
    MERGE,
    PODS,
    STRATEGIC,
    TARGET,
    YAML,
    Bomb,
    config_map,
    selector,
    within,
)


def nested(depth: int, opening: bytes, closing: bytes, core: bytes = b"1") -> bytes:
    """Nest something in itself."""
    return opening * depth + core + closing * depth


def device_class(expression: str) -> bytes:
    """Write a device class with a selector."""
    return json.dumps(
        {
            "metadata": {"generateName": "bomb-"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    ).encode()


def pod(quantity: str) -> bytes:
    """Write a pod that asks for an amount of memory."""
    limits = {"limits": {"memory": quantity}}
    container = {"name": "c", "image": "i", "resources": limits}
    return json.dumps(
        {"metadata": {"generateName": "bomb-"}, "spec": {"containers": [container]}}
    ).encode()


def laughs(levels: int) -> bytes:
    """Write YAML whose aliases multiply: each level is ten of the one before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return ("metadata: {generateName: bomb-}\n" + "\n".join(lines) + "\n").encode()


def doubling(times: int) -> bytes:
    """Write a JSON patch that copies a value into itself, again and again."""
    start = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    steps = [
        {"op": "copy", "from": "/data", "path": f"/data/{'b' * (n + 1)}"} for n in range(times)
    ]
    return json.dumps(start + steps).encode()


def long_copies() -> bytes:
    """Write a JSON patch that copies one large value many times."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/data", "value": {"a": "x" * MEBI}}]
    steps += [{"op": "copy", "from": "/data/a", "path": f"/data/b{n}"} for n in range(3000)]
    return json.dumps(steps).encode()


def many_steps() -> bytes:
    """Write a JSON patch of very many steps."""
    return json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 40_000).encode()


def list_inserts() -> bytes:
    """Write a JSON patch that puts elements at the front of a growing list."""
    start: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/finalizers", "value": []}]
    step = {"op": "add", "path": "/metadata/finalizers/0", "value": "a.example/b"}
    return json.dumps(start + [step] * 9_000).encode()


def loops(depth: int, size: int = 20) -> str:
    """Return an expression of loops in loops."""
    items = "[" + ",".join(map(str, range(size))) + "]"
    text = "true"
    for level in range(depth):
        text = f"{items}.all(x{level}, {text})"
    return text


BOMBS: dict[str, Bomb] = {
    # -- bodies
    "lists in lists": Bomb("POST", CONFIG_MAPS, lambda: nested(MEBI, b"[", b"]")),
    "lists in lists, not closed": Bomb("POST", CONFIG_MAPS, lambda: b"[" * 2 * MEBI),
    "objects in objects": Bomb("POST", CONFIG_MAPS, lambda: nested(300_000, b'{"a":', b"}")),
    "deep and unknown": Bomb("POST", CONFIG_MAPS, lambda: within(nested(100_000, b"[", b"]"))),
    "deep but allowed": Bomb("POST", CONFIG_MAPS, lambda: within(nested(9_000, b"[", b"]"))),
    "deep and unknown objects": Bomb(
        "POST", CONFIG_MAPS, lambda: within(nested(2_000, b'{"a":', b"}"))
    ),
    "a long whole number": Bomb("POST", CONFIG_MAPS, lambda: within(b"9" * 2 * MEBI)),
    "a long fraction": Bomb("POST", CONFIG_MAPS, lambda: within(b"1." + b"9" * 2 * MEBI)),
    "a large exponent": Bomb("POST", CONFIG_MAPS, lambda: within(b"1e999999999")),
    "a long number where one is expected": Bomb(
        "POST",
        PODS,
        lambda: b'{"metadata":{"name":"a"},"spec":{"priority":' + b"9" * 100_000 + b"}}",
    ),
    "a large exponent where a number is expected": Bomb(
        "POST", PODS, lambda: b'{"metadata":{"name":"a"},"spec":{"priority":1e400}}'
    ),
    "a long name": Bomb("POST", CONFIG_MAPS, lambda: config_map(metadata={"name": "x" * 2 * MEBI})),
    "a long prefix of a name": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(metadata={"generateName": "x" * 2 * MEBI})
    ),
    "many keys": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(data={f"k{n}": "" for n in range(150_000)})
    ),
    "many bad keys": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(data={f"/{n}": "" for n in range(150_000)})
    ),
    "many unknown fields": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(**{f"u{n}": 1 for n in range(150_000)})
    ),
    "many repeated fields": Bomb(
        "POST", CONFIG_MAPS, lambda: b'{"metadata":{"name":"a"}' + b',"data":{}' * 200_000 + b"}"
    ),
    "many objects under one repeated field": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: (
            b'{"metadata":{"name":"a"}'
            + b"".join(b',"data":{"%d":""}' % number for number in range(20_000))
            + b"}"
        ),
    ),
    "many labels": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: config_map(metadata={"labels": {f"k{n}": "v" for n in range(100_000)}}),
    ),
    "many bad labels": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: config_map(metadata={"labels": {f"/{n}": "/" for n in range(60_000)}}),
    ),
    "many finalizers": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(metadata={"finalizers": ["/"] * 200_000})
    ),
    "many containers": Bomb(
        "POST",
        PODS,
        lambda: json.dumps(
            {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}] * 50_000}}
        ).encode(),
    ),
    "null bytes": Bomb("POST", CONFIG_MAPS, lambda: b"\0" * MEBI),
    "too large": Bomb("POST", CONFIG_MAPS, lambda: b" " * 4 * MEBI),
    "a lone surrogate": Bomb("POST", CONFIG_MAPS, lambda: config_map(data={"a": "\ud800"})),
    "a surrogate in a name": Bomb(
        "POST", CONFIG_MAPS, lambda: b'{"metadata":{"name":"\\ud800","labels":{"\\udc00":"a"}}}'
    ),
    "bytes that are not text": Bomb(
        "POST", CONFIG_MAPS, lambda: b'{"metadata":{"name":"a"},"data":{"k":"\xff\xfe"}}'
    ),
    # -- YAML
    "a billion laughs": Bomb("POST", CONFIG_MAPS, lambda: laughs(9), YAML),
    "deep YAML": Bomb("POST", CONFIG_MAPS, lambda: nested(20_000, b"[", b"]"), YAML),
    "deep YAML by indentation": Bomb(
        "POST", CONFIG_MAPS, lambda: b"".join(b" " * n + b"a:\n" for n in range(1_500)), YAML
    ),
    "YAML that holds itself": Bomb("POST", CONFIG_MAPS, lambda: b"data: &a\n  b: *a\n", YAML),
    "long YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: b"metadata: {name: a}\ndata:\n" + b"  k: v\n" * 60_000, YAML
    ),
    "a YAML tag": Bomb("POST", CONFIG_MAPS, lambda: b"!!python/object/apply:os.abort []\n", YAML),
    "YAML numbers in sixties": Bomb(
        "POST", CONFIG_MAPS, lambda: b"unknown: " + b"59:" * 100_000 + b"0\n", YAML
    ),
    # -- quantities
    "a quantity with a large exponent": Bomb("POST", PODS, lambda: pod("1e999999999")),
    "a quantity with a small exponent": Bomb("POST", PODS, lambda: pod("1e-999999999")),
    "a long quantity": Bomb("POST", PODS, lambda: pod("9" * MEBI)),
    "a long fraction of a quantity": Bomb("POST", PODS, lambda: pod("0." + "1" * MEBI + "Ei")),
    # -- patches
    "a patch that doubles": Bomb("PATCH", TARGET, lambda: doubling(60), JSON_PATCH),
    "a patch of large copies": Bomb("PATCH", TARGET, long_copies, JSON_PATCH),
    "a patch of many steps": Bomb("PATCH", TARGET, many_steps, JSON_PATCH),
    "a patch of many inserts": Bomb("PATCH", TARGET, list_inserts, JSON_PATCH),
    "a patch with a long path": Bomb(
        "PATCH",
        TARGET,
        lambda: json.dumps([{"op": "add", "path": "/a" * 500_000, "value": 1}]).encode(),
        JSON_PATCH,
    ),
    "a patch at a large index": Bomb(
        "PATCH",
        TARGET,
        lambda: b'[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"a"}]',
        JSON_PATCH,
    ),
    "a deep merge patch": Bomb("PATCH", TARGET, lambda: nested(100_000, b'{"a":', b"}"), MERGE),
    "a merge patch as deep as allowed": Bomb(
        "PATCH", TARGET, lambda: nested(9_000, b'{"a":', b"}"), MERGE
    ),
    "a deep strategic patch": Bomb(
        "PATCH", TARGET, lambda: nested(9_000, b'{"a":', b"}"), STRATEGIC
    ),
    "a strategic patch of directives": Bomb(
        "PATCH",
        TARGET,
        lambda: json.dumps(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"] * 200_000}}
        ).encode(),
        STRATEGIC,
    ),
    "a strategic patch of many items": Bomb(
        "PATCH",
        f"{PODS}/target",
        lambda: json.dumps(
            {"spec": {"tolerations": [], "volumes": [{"name": f"v{n}"} for n in range(80_000)]}}
        ).encode(),
        STRATEGIC,
    ),
    "a strategic patch that deletes many items": Bomb(
        "PATCH",
        f"{PODS}/target",
        lambda: json.dumps(
            {"spec": {"volumes": [{"name": f"v{n}", "$patch": "delete"} for n in range(60_000)]}}
        ).encode(),
        STRATEGIC,
    ),
    "a strategic patch of many values": Bomb(
        "PATCH",
        TARGET,
        lambda: json.dumps(
            {"metadata": {"finalizers": [f"a.example/{n}" for n in range(120_000)]}}
        ).encode(),
        STRATEGIC,
    ),
    "an applied billion laughs": Bomb(
        "PATCH", f"{TARGET}?fieldManager=m", lambda: laughs(9), APPLY
    ),
    "a deep configuration": Bomb(
        "PATCH", f"{TARGET}?fieldManager=m", lambda: nested(9_000, b'{"a":', b"}"), APPLY
    ),
    "many applied keys": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=m",
        lambda: json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "applied"},
                "data": {f"k{n}": "v" for n in range(40_000)},
            }
        ).encode(),
        APPLY,
    ),
    "deep managed fields": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: (
            b'{"metadata":{"generateName":"bomb-","managedFields":[{"manager":"m","operation":'
            b'"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:00Z",'
            b'"fieldsV1":' + nested(9_000, b'{"f:a":', b"}", b"{}") + b"}]}}"
        ),
    ),
    # -- queries
    "many requirements": Bomb("GET", selector(",".join(f"k{n}=v" for n in range(20_000)))),
    "many values": Bomb("GET", selector(f"k in ({','.join(map(str, range(40_000)))})")),
    "brackets in a selector": Bomb("GET", selector("(" * 60_000)),
    "a long name in a selector": Bomb("GET", selector("a" * 200_000)),
    "many fields": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=" + quote(",".join(["metadata.name=a"] * 8_000))
    ),
    "a large limit": Bomb("GET", f"{CONFIG_MAPS}?limit=" + "9" * 5_000),
    "a negative limit": Bomb("GET", f"{CONFIG_MAPS}?limit=-1"),
    "a large version": Bomb("GET", f"{CONFIG_MAPS}?resourceVersion=" + "9" * 5_000),
    "a version that is none": Bomb("GET", f"{CONFIG_MAPS}?resourceVersion=%00%ff"),
    "a token that is none": Bomb("GET", f"{CONFIG_MAPS}?limit=1&continue=" + "A" * 50_000),
    "a large time out": Bomb("GET", f"{CONFIG_MAPS}?timeoutSeconds=" + "9" * 5_000),
    "many options": Bomb("GET", f"{CONFIG_MAPS}?" + "&".join(f"o{n}=1" for n in range(20_000))),
    "a long path": Bomb("GET", "/api" + "/v1" * 20_000),
    "a path of escapes": Bomb("GET", CONFIG_MAPS + "/" + "%25" * 20_000),
    "a path with dots": Bomb("GET", "/api/v1/namespaces/../../../etc/passwd"),
    "a null byte in a path": Bomb("GET", CONFIG_MAPS + "/a%00b"),
    # -- expressions
    "loops in loops": Bomb("POST", CLASSES, lambda: device_class(loops(6))),
    "loops in loops in loops": Bomb("POST", CLASSES, lambda: device_class(loops(40, 3))),
    "brackets in an expression": Bomb(
        "POST", CLASSES, lambda: device_class("(" * 4_000 + "true" + ")" * 4_000)
    ),
    "lists in an expression": Bomb(
        "POST", CLASSES, lambda: device_class("size(" + "[" * 4_000 + "]" * 4_000 + ") == 1")
    ),
    "negations": Bomb("POST", CLASSES, lambda: device_class("!" * 9_001 + "true")),
    "signs": Bomb("POST", CLASSES, lambda: device_class("-" * 9_001 + "1 == 1")),
    "a long sum": Bomb("POST", CLASSES, lambda: device_class("+".join(["1"] * 4_000) + " > 0")),
    "a long chain": Bomb("POST", CLASSES, lambda: device_class("device" + ".a" * 4_000)),
    "a long chain of conditions": Bomb(
        "POST", CLASSES, lambda: device_class("true ? " * 1_000 + "true" + " : true" * 1_000)
    ),
    "a long expression": Bomb("POST", CLASSES, lambda: device_class("true||" * 200_000 + "true")),
    "a bad pattern": Bomb("POST", CLASSES, lambda: device_class("'a'.matches('(' + 'a')")),
    "a pattern that backtracks": Bomb(
        "POST",
        CLASSES,
        lambda: device_class(f"'{'a' * 5_000}!'.matches('^(a+)+$') || device.driver == 'x'"),
    ),
    "a large pattern": Bomb(
        "POST", CLASSES, lambda: device_class("'a'.matches('((a{1000}){1000}){1000}')")
    ),
    "a string that doubles": Bomb(
        "POST",
        CLASSES,
        lambda: device_class(
            "[" + ",".join("1" * 40) + "].map(x, '" + "a" * 1_000 + "'.replace('', 'aaaaaaaaaa'))"
            ".all(s, s.replace('a', s) != '')"
        ),
    ),
    "a large number in an expression": Bomb(
        "POST", CLASSES, lambda: device_class("9" * 5_000 + " > 1")
    ),
    "many selectors": Bomb(
        "POST",
        CLASSES,
        lambda: json.dumps(
            {
                "metadata": {"name": "bomb"},
                "spec": {"selectors": [{"cel": {"expression": loops(3)}}] * 2_000},
            }
        ).encode(),
    ),
    **FLOODS,
}
