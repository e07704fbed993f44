"""The manifests as a Helm chart: the objects of `sully install`, with values where they may differ.

`make generate` writes it to `deploy/chart`, and a test compares what Helm renders with
`sully install`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import starmap
from typing import Any

from sully import __version__
from sully.install.alerts import prometheus_rule
from sully.install.chart_values import VALUES, defaults, schema
from sully.install.folders import HEADER, of_evictor
from sully.install.grafana import dashboard_config_map
from sully.install.manifests import manifests, to_text
from sully.install.workload import (
    Settings,
    budget,
    deployment,
    metadata,
    monitor,
    network_policy,
    service,
)

Obj = dict[str, Any]
_NAMESPACE = "{{ .Release.Namespace }}"
_IMAGE, _REPLICAS, _RESOURCES, _POD = ("SULLY-IMAGE", 424242, "SULLY-RESOURCES", "SULLY-POD")
"""What stands in the objects where the chart has a template."""
_PLACE = "SULLY-PLACE"
_REQUIRED = '{{ required "set image: there is no published image of Sully" .Values.image | quote }}'
_MORE = "SULLY-MORE"
_FOLDER = "/etc/sully"
_FILES = {
    "notifications": ("--notifications", _FOLDER, "config.yaml"),
    "prometheus": ("--prometheus-servers", f"{_FOLDER}-prometheus", "servers.yaml"),
}
"""Files in Secrets, by their part of the values: the flag, the folder and the key."""
_POD_FIELDS = ("priorityClassName", "nodeSelector", "tolerations", "affinity", "imagePullSecrets")
_KEEP = {"helm.sh/resource-policy": "keep"}
_NOTES = """\
Sully's controllers are installed in the namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/sully-controllers
  kubectl sully capabilities
"""


def files() -> dict[str, str]:
    """Return the text of every file, by its path below `deploy/`."""
    chart = {
        "apiVersion": "v2",
        "name": "sully",
        "description": "Taints and tolerations for devices: controllers for a cluster with DRA",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.33.0-0",
    }
    written = {
        "Chart.yaml": HEADER + to_text([chart]),
        "values.yaml": HEADER + _values(),
        "values.schema.json": json.dumps(schema(), indent=2) + "\n",
        "templates/NOTES.txt": _NOTES,
    }
    written |= {f"templates/{name}.yaml": HEADER + text for name, text in _templates().items()}
    return {f"chart/{path}": text for path, text in written.items()}


def _templates() -> dict[str, str]:
    settings = Settings(namespace=_NAMESPACE, image=_IMAGE, replicas=_REPLICAS)
    objects = manifests(settings)
    return {
        "crds": _if("crds.enabled", _literal(to_text(map(_with_keep_policy, objects["crds"])))),
        "admission": _literal(to_text(objects["admission"])),
        "rbac": to_text(objects["rbac"]) + _evicting(to_text(of_evictor(settings))),
        "controllers": to_text([service(settings)]) + _deployment(settings),
        "budget": _if("podDisruptionBudget.enabled", to_text([budget(settings)])),
        "network-policy": _if("networkPolicy.enabled", to_text([network_policy(settings)])),
        "monitor": _if("serviceMonitor.enabled", to_text([monitor(settings)])),
        "alerts": _if("alerts.enabled", _alerts(settings)),
        "dashboard": _if("dashboard.enabled", _dashboard(settings)),
        "priority-class": _if("priorityClass.create", _priority_class()),
    }


def _alerts(settings: Settings) -> str:
    """Return the alerts; their own templates are Prometheus', the namespace is Helm's."""
    text = _literal(to_text([prometheus_rule(replace(settings, namespace=_PLACE))]))
    return text.replace(_PLACE, _NAMESPACE)


def _dashboard(settings: Settings) -> str:
    text = _literal(to_text([dashboard_config_map(replace(settings, namespace=_PLACE))]))
    return text.replace(_PLACE, _NAMESPACE)


def _priority_class() -> str:
    made = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(_PLACE),
        "value": _REPLICAS,
        "globalDefault": False,
        "description": "The controllers of Sully, which evict pods from tainted devices.",
    }
    text = to_text([made]).replace(f" {_REPLICAS}\n", " {{ .Values.priorityClass.value | int }}\n")
    required = '{{ required "set priorityClassName: its name" .Values.priorityClassName | quote }}'
    return text.replace(_PLACE, required)


def _with_keep_policy(definition: Obj) -> Obj:
    """Return a definition that outlives the release: with it all objects of the kind would go."""
    named = definition["metadata"]
    annotations = {**named.get("annotations", {}), **_KEEP}
    return {**definition, "metadata": {**named, "annotations": annotations}}


def _deployment(settings: Settings) -> str:
    made = deployment(settings)
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = _RESOURCES
    pod[_POD] = None
    container = pod["containers"][0]
    container["args"].append(_MORE)
    container["volumeMounts"].append(_MORE)
    pod["volumes"].append(_MORE)
    text = to_text([made]).replace(f" {_REPLICAS}\n", " {{ .Values.replicas }}\n")
    text = text.replace(_IMAGE, _REQUIRED)
    text = text.replace(f"--evictor={settings.evictor}", "--evictor={{ .Values.evictor }}")
    text = text.replace(f" {_RESOURCES}\n", " {{- toYaml .Values.resources | nindent 10 }}\n")
    for entries in zip(*starmap(_file, _FILES.items()), strict=True):
        text = text.replace(f"- {_MORE}\n", "".join(entries), 1)
    return text.replace(f"      {_POD}: null\n", "".join(map(_optional, _POD_FIELDS)))


def _file(value: str, file: tuple[str, str, str]) -> tuple[str, ...]:
    """Return the argument, the mount and the volume of a file, where its Secret is configured."""
    flag, folder, key = file
    entries = (
        f"        - {flag}={folder}/{key}\n",
        f"        - name: {value}\n          mountPath: {folder}\n          readOnly: true\n",
        f"      - name: {value}\n        secret:\n          secretName: {{{{ . | quote }}}}\n",
    )
    start = f"{{{{- with .Values.{value}.secretName }}}}\n"
    return tuple(f"{start}{entry}{{{{- end }}}}\n" for entry in entries)


def _optional(field: str) -> str:
    value = "{{ toYaml . | nindent 8 }}" if defaults()[field] != "" else "{{ . | quote }}"
    return f"      {{{{- with .Values.{field} }}}}\n      {field}: {value}\n      {{{{- end }}}}\n"


def _if(value: str, text: str) -> str:
    return f"{{{{- if .Values.{value} }}}}\n{text}{{{{- end }}}}\n"


def _evicting(text: str) -> str:
    return f'{{{{- if eq .Values.evictor "sully" }}}}\n{text}{{{{- end }}}}\n'


def _literal(text: str) -> str:
    """Escape what Helm would take for a template."""
    return text.replace("{{", '{{ "{{" }}')


def _values() -> str:
    parts = [f"# {value.description}\n{_assignment(value.path, value.default)}" for value in VALUES]
    return "\n".join(parts)


def _assignment(path: str, default: Any) -> str:
    *outer, name = path.split(".")
    nested = {name: default}
    for part in reversed(outer):
        nested = {part: nested}
    return to_text([nested]).removeprefix("---\n")
