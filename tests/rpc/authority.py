# SPDX-License-Identifier: Apache-2.0
"""An authority that signs the certificates of tests."""

import datetime
import ipaddress


class Authority:
    """Signs certificates, each with its private key in one file."""

    def __init__(self, folder, name):
        from cryptography.hazmat.primitives.asymmetric import ec

        self.folder, self.name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(name, self._key.public_key(), self, authority=True)
        self.path = self._write(f"{name}.ca", self._certificate)

    def _sign(self, name, public, issuer, authority=False, hosts=(), days=(-1, 1)):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        def named(text):
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        now = datetime.datetime.now(datetime.timezone.utc)
        made = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer.name)).public_key(public)
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(now + datetime.timedelta(days=days[0])).not_valid_after(now + datetime.timedelta(days=days[1]))
        made = made.add_extension(x509.BasicConstraints(authority, None), True)
        if hosts:
            names = [x509.IPAddress(ipaddress.ip_address(one)) if one[0].isdigit() else x509.DNSName(one) for one in hosts]
            made = made.add_extension(x509.SubjectAlternativeName(names), False)
        return made.sign(issuer._key, hashes.SHA256())

    def _write(self, file, certificate, key=None):
        from cryptography.hazmat.primitives import serialization

        pem = serialization.Encoding.PEM
        data = certificate.public_bytes(pem)
        if key is not None:
            data += key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path = self.folder / file
        path.write_bytes(data)
        path.chmod(0o600)
        return str(path)

    def give(self, name, file=None, **options):
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(f"{file or name}.{self.name}.pem", self._sign(name, key.public_key(), self, **options), key)
