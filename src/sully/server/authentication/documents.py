"""OpenID discovery and the public key, with which others verify tokens."""

from sully.machinery.serialization.codec import to_json
from sully.server.authentication.keys import ALGORITHM, SigningKey
from sully.server.authentication.tokens import ISSUER
from sully.server.http.pages import StaticPage

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"


def pages(key: SigningKey, url: str) -> dict[str, StaticPage]:
    """Return the pages by path; `url` is where others reach the server."""
    configuration = {
        "issuer": ISSUER,
        "jwks_uri": f"{url}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    return {
        CONFIGURATION: StaticPage(to_json(configuration), "application/json"),
        KEYS: StaticPage(to_json({"keys": [key.public.jwk]}), "application/jwk-set+json"),
    }
