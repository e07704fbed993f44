"""Certificates: the cluster CA, the server's certificate, and clients' certificates.

Keys are elliptic (fast to make, small). The files are in the data directory; a user who can read
the key of the CA can impersonate anyone, so all keys are readable by the owner only.
"""

import ipaddress
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sully.runtime.files import write_private
from sully.server.identity import Pair
from sully.server.net.records import ServerContext
from sully.store.errors import OpenError

CA_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)


class Authority:
    """Signs certificates for one data directory."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        self._key = serialization.load_pem_private_key(pair.key, password=None)

    @classmethod
    def open(cls, folder: Path, now: datetime) -> "Authority":
        """Load the authority of a directory, or make it."""
        certificate, key = folder / "ca.crt", folder / "ca.key"
        if certificate.exists() and key.exists():
            try:
                return cls(Pair(certificate.read_bytes(), key.read_bytes()))
            except ValueError as error:
                raise OpenError(
                    f"{certificate} and {key} are not a certificate and its key ({error})."
                    " Restore a backup with 'sully restore', or remove both: then every kubeconfig"
                    " issued so far stops working"
                ) from error
        pair = _new_authority(now)
        write_private(key, pair.key)
        write_private(certificate, pair.certificate)
        return cls(pair)

    def server(self, names: list[str], now: datetime) -> Pair:
        """Issue a certificate for the server's own names and addresses."""
        alternatives = [_general_name(name) for name in names]
        extensions: list[x509.ExtensionType] = [
            x509.SubjectAlternativeName(alternatives),
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        ]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sully")])
        return self._issue(subject, extensions, now)

    def client(
        self, user: str, groups: list[str], now: datetime, life: timedelta = LEAF_LIFE
    ) -> Pair:
        """Issue a certificate that makes its holder a user with groups."""
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        usage: list[x509.ExtensionType] = [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])]
        return self._issue(x509.Name(names), usage, now, life)

    def signed(self, pair: Pair) -> bool:
        """Report whether this CA signed a certificate."""
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    @property
    def ends(self) -> datetime:
        """Return when the CA expires, and with it all that it issued."""
        return self._certificate.not_valid_after_utc

    def _issue(
        self,
        subject: x509.Name,
        extensions: list[x509.ExtensionType],
        now: datetime,
        life: timedelta = LEAF_LIFE,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(min(now + life, self.ends))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key()),  # type: ignore[arg-type]  # our own key is elliptic
            critical=False,
        )
        signed = builder.sign(self._key, hashes.SHA256())  # type: ignore[arg-type]  # our own key is elliptic
        return Pair(signed.public_bytes(serialization.Encoding.PEM), _key_bytes(key))


def self_signed_context(name: str, now: datetime) -> ssl.SSLContext:
    """Return a server context with a self-signed certificate that lives in memory only."""
    pair = Authority(_new_authority(now)).server([name], now)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    # The ssl module reads a certificate only from files. The folder is private to this user.
    with TemporaryDirectory(prefix="sully-") as folder:
        path = Path(folder, "tls.pem")
        write_private(path, pair.certificate + pair.key)
        context.load_cert_chain(path)
    return context


def belong_together(pair: Pair) -> bool:
    """Report whether these are a certificate and its key at all."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
    except ValueError:
        return False
    return certificate.public_key() == key.public_key()


def expires_soon(pair: Pair, now: datetime) -> bool:
    """Report whether a certificate should be replaced."""
    return end_of(pair) - now < RENEW_BEFORE


def end_of(pair: Pair) -> datetime:
    """Return when a certificate expires."""
    return x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc


def names_of(pair: Pair) -> set[str]:
    """Return the names and addresses a server certificate is good for."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def _new_authority(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sully-ca")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key))


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
