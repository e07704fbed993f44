"""Bodies as clients send them; each builder hides what a case is not about."""

from typing import Any

from manifests import request, resource_pool

Obj = dict[str, Any]

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    r" validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS_TEXT = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'Example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of"
    " alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for"
    " validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
EFFECTS_TEXT = 'supported values: "NoExecute", "NoSchedule", "None"'


def body(kind: str, spec: Obj, **metadata: Any) -> Obj:
    return {"kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


def taint(key: str = "example.com/bad", effect: str = "NoSchedule", **more: Any) -> Obj:
    return {"key": key, "effect": effect, **more}


def device(name: str = "d", **more: Any) -> Obj:
    return {"name": name, **more}


def slice_body(*devices: Obj, **spec: Any) -> Obj:
    usual: Obj = {
        "driver": "gpu.example.com",
        "pool": resource_pool("p"),
        "allNodes": True,
    }
    if devices:
        usual["devices"] = list(devices)
    expected = {name: value for name, value in (usual | spec).items() if value is not None}
    return body("ResourceSlice", expected)


def rule_body(selector: Obj | None = None, **given_taint: Any) -> Obj:
    spec: Obj = {"taint": taint(**given_taint)}
    if selector is not None:
        spec["deviceSelector"] = selector
    return body("DeviceTaintRule", spec)


def patch_body(**devices: Any) -> Obj:
    return body("ResourceSlicePatch", {"devices": devices})


def class_body(*expressions: str, **spec: Any) -> Obj:
    if expressions:
        spec["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return body("DeviceClass", spec)


def exactly(name: str = "r", **more: Any) -> Obj:
    return request("c", name, **more)


def first_available(*alternatives: Obj, name: str = "r") -> Obj:
    return {"name": name, "firstAvailable": [{"deviceClassName": "c"} | a for a in alternatives]}


def claim_body(*requests: Obj, **devices: Any) -> Obj:
    spec = {"devices": {"requests": list(requests), **devices}}
    return body("ResourceClaim", spec, namespace="ns")


def template_body(*requests: Obj, metadata: Obj | None = None) -> Obj:
    spec: Obj = {"spec": {"devices": {"requests": list(requests)}}}
    if metadata is not None:
        spec["metadata"] = metadata
    return body("ResourceClaimTemplate", spec, namespace="ns")


def result(request: str = "r", **more: Any) -> Obj:
    return {"request": request, "driver": "gpu.example.com", "pool": "p", "device": "d", **more}


def consumer(uid: str = "u1") -> Obj:
    return {"resource": "pods", "name": f"pod-{uid}", "uid": uid}
