# SPDX-License-Identifier: Apache-2.0
"""Certificates on both sides in place of a key."""

import pytest
from authority import Authority
from faulty_wire import FaultyWire

from baton import rpc

pytest.importorskip("cryptography")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority, other = Authority(folder, "lab"), Authority(folder, "other")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "ci.policy").write_text("baton-rpc-policy 1\npolicy: session\nallow: test.rpc.add\nmemory: 1000000\n")
    (policies / "admin.policy").write_text("baton-rpc-policy 1\npolicy: trusted\n")
    (policies / "late.policy").write_text("baton-rpc-policy 1\npolicy: trusted\nexpires: 1000\n")
    (policies / "odd.policy").write_text("something else\n")
    certificate = authority.give("board", hosts=["127.0.0.1", "board"])
    url = f"tls://127.0.0.1:0?cert={certificate}&ca={authority.path}&policies={policies}"
    with rpc.Server(url=url) as server:
        yield server, authority, other


def open_with(lab, certificate, ca=None, port=None, host="127.0.0.1"):
    return rpc.connect(f"tls://{host}:{port or lab[0].port}?cert={certificate}&ca={ca or lab[1].path}", connect_timeout=5)


def test_a_certificate_has_the_policy_of_its_name(lab):
    with open_with(lab, lab[1].give("ci")) as remote:
        assert remote.info["policy"] == "session" and remote.peer == "certificate board"
        assert remote.get_function("test.rpc.add")(1, 2) == 3
        with pytest.raises(rpc.Denied):
            remote.get_function("test.rpc.echo")
    with open_with(lab, lab[1].give("admin")) as remote:
        assert remote.info["policy"] == "trusted" and remote.get_function("test.rpc.echo")("x") == "x"


@pytest.mark.parametrize("name", ["nobody", "late", "odd", "../policies/admin", "", ".hidden", "a b"])
def test_a_name_without_a_policy_is_refused(lab, name):
    if not name:
        pytest.skip("a certificate has a name of a character or more")
    certificate = lab[1].give(name, file="tried")
    with pytest.raises(rpc.RPCError):
        open_with(lab, certificate).get_function("test.rpc.add")


def refused(lab, certificate, **options):
    with pytest.raises(rpc.RPCError) as info:
        open_with(lab, certificate, **options).get_function("test.rpc.add")
    return isinstance(info.value, (rpc.Denied, rpc.SessionLost))


def test_certificates_that_are_not_trusted(lab):
    authority, other = lab[1], lab[2]
    assert refused(lab, other.give("admin"))  # of another authority
    assert refused(lab, other.give("admin"), ca=other.path)  # and it does not trust the server
    assert refused(lab, authority.give("admin"), ca=other.path)
    assert refused(lab, authority.give("admin", file="old", days=(-3, -1)))  # expired
    assert refused(lab, authority.give("admin", file="new", days=(1, 3)))  # not yet
    assert refused(lab, authority.give("admin"), host="localhost")  # the server's is for another host


def test_a_key_is_no_certificate_and_the_other_way_round(lab, tmp_path):
    from baton.rpc.library import function

    key = str(tmp_path / "k")
    function("KeyNew")("k", key, "trusted", [])
    with pytest.raises(rpc.RPCError):
        rpc.connect("127.0.0.1", lab[0].port, key_file=key).get_function("test.rpc.add")
    with rpc.Server("127.0.0.1", 0, key_file=key) as server:
        assert refused(lab, lab[1].give("admin"), port=server.port)


@pytest.mark.parametrize("url", ["tls://h:1?cert=x", "tls://h:1?ca=x", "tls://h:1?cert=x&ca=y&key=z", "tls://h:1?colour=red", "tls://h:1?cert"])
def test_options_that_do_not_go_together(url):
    with pytest.raises(ValueError, match="options are|certificate needs"):
        rpc.connect(url)


def test_files_that_are_not_there(lab):
    with pytest.raises(rpc.Denied, match="cannot be used"):
        open_with(lab, "/nonexistent.pem")


def test_a_session_goes_on_after_a_cut(lab):
    with FaultyWire(lab[0].port) as wire, open_with(lab, lab[1].give("admin"), port=wire.port) as remote:
        add = remote.get_function("test.rpc.add")
        wire.cut()
        assert add(1, 1) == 2
