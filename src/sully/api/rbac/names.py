"""The names of the group and of service accounts."""

RBAC = "io.k8s.api.rbac.v1"
GROUP = "rbac.authorization.k8s.io"

SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


def service_account(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"
