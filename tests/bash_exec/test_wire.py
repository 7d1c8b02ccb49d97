"""Frames of requests and lines of monitors."""

import pytest

from bash_exec import wire

REQUEST = wire.Request("m", "/tmp/a b", "bash", "echo 'ü'\nexit \udcff")


@pytest.mark.parametrize("wanted", [REQUEST, REQUEST._replace(has_input=True, environment=("A=b=c", "ü=\udcff", "E="))])
def test_a_request_survives_the_wire_one_byte_at_a_time(wanted):
    buffer = bytearray()
    got = []
    for byte in wire.encode_request(wanted) * 2:
        buffer.append(byte)
        request = wire.take_request(buffer)
        if request is not None:
            got.append(request)
    assert got == [wanted, wanted]
    assert buffer == b""


@pytest.mark.parametrize("processes", [[], [(1, "sleep 60"), (22, "odd: name\n\udcff ü")]])
def test_processes_survive_a_line(processes):
    word, *fields = wire.encode_processes("running", processes).split(" ")
    assert word == "running"
    assert wire.decode_processes(fields) == [(pid, command.replace("\udcff", "?")) for pid, command in processes]
