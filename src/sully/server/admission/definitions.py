"""What depends on definitions as a whole: how many there are, and which are going away."""

from sully.api.apiextensions.definitions import DEFINITIONS
from sully.machinery.errors import MethodNotAllowed, forbidden
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.customresources.definitions import ServedDefinitions
from sully.server.requests import Target

MOST_DEFINITIONS = 1000
"""How many definitions a server takes: each costs memory in every replica and client."""


class DefinitionLifecycle:
    """Rejects objects of a definition that is being deleted, and too many definitions."""

    def __init__(self, served: ServedDefinitions) -> None:
        self._served = served

    def handles(self, target: Target, operation: str) -> bool:
        """Report whether the plugin checks an operation on a resource."""
        return operation == "create" and (
            target.resource is DEFINITIONS or target.resource.storage_version.custom is not None
        )

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a create."""
        resource = attributes.request.target.resource
        if resource is DEFINITIONS and len(self._served.all) >= MOST_DEFINITIONS:
            name = (attributes.obj or {"metadata": {}})["metadata"].get("name", "")
            text = f"the server has {MOST_DEFINITIONS} definitions, which is its limit"
            raise forbidden(resource.plural, resource.group, name, text)
        if resource.storage_version.custom is None:
            return
        self._served.pull()
        definition = self._served.of(resource.storage_key)
        if definition is not None and "deletionTimestamp" in definition["metadata"]:
            text = "create not allowed while custom resource definition is terminating"
            raise MethodNotAllowed(text, details={"group": resource.group, "kind": resource.plural})
