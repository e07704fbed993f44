"""When certificates are valid."""

from datetime import datetime


def validity(certificate: bytes) -> tuple[datetime, datetime] | None:
    """Return from when until when a PEM certificate is valid; None if it is none."""
    from cryptography import x509

    try:
        loaded = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return None
    return loaded.not_valid_before_utc, loaded.not_valid_after_utc
