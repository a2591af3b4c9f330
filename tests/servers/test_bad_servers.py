"""Servers that are down, busy, slow, cut answers off or are not Prometheus: plain words, a next step, nothing lost."""

import gzip
import http.server
import json
import re
import ssl
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault, InputError, ServerFault
from gpuledger.lake.layout import Lake
from gpuledger.lake.pulling import pull
from gpuledger.telemetry.servers.address import api_root, is_server
from gpuledger.telemetry.servers.prometheus import Prometheus, one_of
from gpuledger.telemetry.servers.web import Access, Web
from gpuledger.units import utc

# A certificate for 127.0.0.1 that signs itself, and the same with its key; made for these tests.
FIXTURES = Path(__file__).parent / "fixtures"
START = 1_768_896_000_000
HOUR = 3_600_000
STEP = 60_000
GPUS = ("GPU-a", "GPU-b", "GPU-c")


class Fake:
    """A Prometheus with one sample a minute of three GPUs; `before` may answer in its place."""

    def __init__(self):
        self.asked = []
        self.before = lambda path, params: None
        self.zipped = False

    def answer(self, path, params):
        self.asked.append((path, params))
        said = self.before(path, params)
        if said is not None:
            return said
        data = {"query": self.query, "query_range": self.range, "series": self.series, "targets": self.targets}.get(
            path.rpartition("/")[2], self.names
        )(params)
        return 200, {"Content-Type": "application/json"}, json.dumps({"status": "success", "data": data}).encode()

    def names(self, _params):
        return ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "node_load1"]

    def series(self, params):
        return (
            [{"__name__": "DCGM_FI_DEV_GPU_UTIL", **labels(g)} for g in GPUS] if "DCGM" in params["match[]"][0] else []
        )

    def targets(self, _params):
        return {"activeTargets": [{"scrapeInterval": "1m"}]}

    def query(self, params):
        if params["query"] == ["vector(1)"]:
            return {"resultType": "vector", "result": [{"metric": {}, "value": [1, "1"]}]}
        text, end = params["query"][0], round(float(params["time"][0]) * 1000)
        span = int(re.search(r"\[(\d+)ms\]", text)[1])
        return {
            "resultType": "matrix",
            "result": self.matrix(text, stamps(end - span, end + 1)),
        }  # both ends, as in 2.x

    def range(self, params):
        start, end, step = (round(float(params[k][0]) * 1000) for k in ("start", "end", "step"))
        steps = range(start, end + 1, step)
        found = []
        for one in self.matrix(params["query"][0], [0]):
            at = [
                (t / 1000, t // STEP * STEP) for t in steps if GAP[0] > t // STEP * STEP or t // STEP * STEP >= GAP[1]
            ]
            timed = params["query"][0].startswith("timestamp(")
            found.append({**one, "values": [[t, str(s / 1000 if timed else value(s))] for t, s in at]})
        return {"resultType": "matrix", "result": found}

    def matrix(self, text, times):
        devices = re.search(r'UUID=~"([^"]*)"', text)
        wanted = [g for g in GPUS if not devices or g in devices[1].split("|")]
        names = [n for n in self.names({})[:2] if n in text]
        return [
            {"metric": {"__name__": n, **labels(g)}, "values": [[t / 1000, str(value(t))] for t in times]}
            for n in names
            for g in wanted
        ]


GAP = (START + HOUR, START + 2 * HOUR)


def stamps(start, end):
    every = range(-(-start // STEP) * STEP, end, STEP)
    return [t for t in every if not GAP[0] <= t < GAP[1]]


def value(at_ms):
    return at_ms // STEP % 97


def labels(gpu):
    return {"UUID": gpu, "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node-1", "gpu": "0", "job": "gpu"}


@contextmanager
def serving(fake, *, secure=False):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            parts = urlsplit(self.path)
            code, headers, content = fake.answer(parts.path, parse_qs(body or parts.query))
            if fake.zipped:
                content, headers = gzip.compress(content), {**headers, "Content-Encoding": "gzip"}
            self.send_response(code)
            cut = headers.pop("cut", 0)
            for name, text in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content[: len(content) - cut] if cut else content)
            self.close_connection = True

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(FIXTURES / "server.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def at(fake):
    with serving(fake) as place:
        yield place


def pulled(at, lake, *, hours=4, waits=None, timeout_s=5.0, patience_s=300.0, step_ms=None, **access):
    web = Web(
        f"http://{at}", Access(**access), waiting=lambda s, why: waits.append((s, why)) if waits is not None else None,
        sleep=lambda _s: None, timeout_s=timeout_s, patience_s=patience_s,
    )  # fmt: skip
    return pull(Lake(lake), Prometheus(web, step_ms), since_ms=START, until_ms=START + hours * HOUR)


def all_rows(hours=4):
    return len(GPUS) * len(stamps(START, START + hours * HOUR))


def test_all_samples_come_with_their_own_times_and_the_gap_stays(fake, at, tmp_path):
    assert pulled(at, tmp_path).rows_added == all_rows()
    rows = gpuledger.open(tmp_path).samples().df()
    assert sorted(set(rows["at_ms"])) == stamps(START, START + 4 * HOUR)
    assert rows["power_w"].tolist() == [value(t) for t in rows["at_ms"]]


def test_gzipped_answers_are_read(fake, at, tmp_path):
    fake.zipped = True
    assert pulled(at, tmp_path).rows_added == all_rows()


def test_a_window_that_is_too_much_is_asked_for_in_pieces(fake, at, tmp_path):
    def limit(_path, params):
        text = params.get("query", [""])[0]
        span = re.search(r"\[(\d+)ms\]", text)
        if span and int(span[1]) > 20 * 60_000:
            words = {
                "status": "error",
                "errorType": "execution",
                "error": "query processing would load too many samples",
            }
            return 422, {}, json.dumps(words).encode()
        return None

    fake.before = limit
    assert pulled(at, tmp_path).rows_added == all_rows()


def test_a_fleet_that_is_too_much_is_asked_for_device_by_device(fake, at, tmp_path):
    def limit(_path, params):
        text = params.get("query", [""])[0]
        if "DCGM" in text and ("UUID=~" not in text or "|GPU" in text):
            return 413, {}, b"too large"
        return None

    fake.before = limit
    assert pulled(at, tmp_path, hours=1).rows_added == all_rows(1)


def test_one_device_that_is_too_much_is_a_fault(fake, at, tmp_path):
    fake.before = lambda _path, params: (422, {}, b"no") if "DCGM" in params.get("query", [""])[0] else None
    with pytest.raises(ServerFault, match=r"(?s)one GPU.*limits"):
        pulled(at, tmp_path, hours=1)


def test_too_many_requests_are_waited_for_as_long_as_the_server_says(fake, at, tmp_path):
    left = [3]

    def busy(_path, _params):
        left[0] -= 1
        return (429, {"Retry-After": "7"}, b"") if left[0] >= 0 else None

    fake.before, waits = busy, []
    assert pulled(at, tmp_path, waits=waits).rows_added == all_rows()
    assert [s for s, _ in waits] == [7.0] * 3
    assert "too many requests" in waits[0][1]


def test_a_server_that_stays_busy_is_given_up_with_what_came_kept(fake, at, tmp_path):
    pulled(at, tmp_path, hours=1)
    fake.before = lambda *_: (503, {}, b"starting")
    with pytest.raises(ServerFault, match=r"(?s)still busy.*goes on where it stopped"):
        pulled(at, tmp_path, hours=4, patience_s=3.0)
    fake.before = lambda *_: None
    assert pulled(at, tmp_path, hours=4).rows_added == all_rows() - all_rows(1)
    assert len(gpuledger.open(tmp_path).samples().df()) == all_rows()


def test_what_was_read_is_not_asked_for_again(fake, at, tmp_path):
    pulled(at, tmp_path)
    fake.asked.clear()
    assert pulled(at, tmp_path).rows_read == 0
    assert [p["query"] for _, p in fake.asked] == [["vector(1)"]]


def test_an_earlier_start_reads_what_is_before(fake, at, tmp_path):
    pulled(at, tmp_path, hours=1)
    web = Web(f"http://{at}")
    again = pull(Lake(tmp_path), Prometheus(web), since_ms=START - HOUR, until_ms=START + HOUR)
    assert again.rows_added == len(GPUS) * len(stamps(START - HOUR, START))
    assert again.rows_duplicate == 0


def test_an_answer_cut_off_is_asked_for_again_in_pieces(fake, at, tmp_path):
    def cut(_path, params):
        text = params.get("query", [""])[0]
        span = re.search(r"\[(\d+)ms\]", text)
        if span and int(span[1]) > HOUR:
            code, headers, content = Fake.answer(Fake(), "/query", params)
            return code, {**headers, "cut": 50}, content
        return None

    fake.before = cut
    assert pulled(at, tmp_path).rows_added == all_rows()


def test_truncated_json_is_asked_for_again_in_pieces(fake, at, tmp_path):
    def cut(_path, params):
        span = re.search(r"\[(\d+)ms\]", params.get("query", [""])[0])
        return (
            (200, {}, b'{"status":"success","data":{"resultType":"matrix","resu')
            if span and int(span[1]) > HOUR
            else None
        )

    fake.before = cut
    assert pulled(at, tmp_path).rows_added == all_rows()


def test_a_slow_answer_is_asked_for_in_pieces(fake, at, tmp_path):
    def slow(_path, params):
        span = re.search(r"\[(\d+)ms\]", params.get("query", [""])[0])
        if span and int(span[1]) > HOUR:
            time.sleep(0.6)

    fake.before = slow
    assert pulled(at, tmp_path, timeout_s=0.3).rows_added == all_rows()


def test_a_server_without_raw_ranges_gives_the_same_samples_by_steps(fake, at, tmp_path):
    def refuse(path, params):
        return (
            (400, {}, b'{"status":"error","error":"range vectors are off"}')
            if "ms]" in params.get("query", [""])[0]
            else None
        )

    fake.before = refuse
    pulled(at, tmp_path)
    rows = gpuledger.open(tmp_path).samples().df()
    assert sorted(set(rows["at_ms"])) == stamps(START, START + 4 * HOUR)
    assert rows["power_w"].tolist() == [value(t) for t in rows["at_ms"]]


def test_steps_need_the_scrape_interval(fake, at, tmp_path):
    def refuse(path, params):
        if path.endswith("/targets"):
            return 404, {}, b""
        return (400, {}, b"no") if "ms]" in params.get("query", [""])[0] else None

    fake.before = refuse
    with pytest.raises(ServerFault, match=r"(?s)--step 15s"):
        pulled(at, tmp_path)
    assert pulled(at, tmp_path, step_ms=STEP).rows_added == all_rows()


@pytest.mark.parametrize(
    ("code", "headers", "content", "words"),
    [
        (200, {"Content-Type": "text/html"}, b"<!doctype html><title>Sign in</title>", r"(?s)web page.*credentials"),
        (
            302,
            {"Location": "https://sso.example/login"},
            b"",
            r"(?s)redirected to https://sso.example/login.*API itself",
        ),
        (401, {}, b"", r"(?s)access denied.*--bearer-file"),
        (403, {}, b"", r"(?s)access denied.*--user"),
        (404, {}, b"", r"(?s)no Prometheus API.*/select/0/prometheus"),
        (200, {}, b"pong", r"(?s)does not answer as a Prometheus.*address"),
        (200, {}, b'{"status":"error","error":"out of order"}', "out of order"),
        (
            200,
            {},
            b'{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}}',
            "did not answer",
        ),
    ],
)
def test_what_is_not_the_api_is_refused_in_one_sentence(fake, at, tmp_path, code, headers, content, words):
    fake.before = lambda *_: (code, headers, content)
    with pytest.raises(ServerFault, match=words) as caught:
        pulled(at, tmp_path / "lake")
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert not (tmp_path / "lake").exists()


def test_a_server_that_is_down_is_a_fault_at_once(tmp_path):
    with pytest.raises(ServerFault, match=r"(?s)127.0.0.1:9: cannot be reached.*port"):
        pulled("127.0.0.1:9", tmp_path)


def test_a_server_without_gpus_names_the_exporters(fake, at, tmp_path):
    fake.before = lambda path, _: (200, {}, b'{"status":"success","data":["up"]}') if path.endswith("/values") else None
    with pytest.raises(ServerFault, match=r"(?s)no metrics of GPUs.*dcgm-exporter"):
        pulled(at, tmp_path / "lake")


def test_credentials_and_headers_go_with_each_request_and_are_not_kept(fake, at, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    seen = []
    web = Web(f"http://{at}", Access({"X-Scope-OrgID": "team-a"}, bearer_file=tmp_path / "token"))
    opened = web._opener.open
    web._opener.open = lambda request, **k: seen.append(dict(request.header_items())) or opened(request, **k)
    pull(Lake(tmp_path / "lake"), Prometheus(web), since_ms=START, until_ms=START + HOUR)
    assert {r["Authorization"] for r in seen} == {"Bearer s3cret"}
    assert {r["X-scope-orgid"] for r in seen} == {"team-a"}
    kept = [f.read_text() for f in (tmp_path / "lake/servers").iterdir()]
    assert len(kept) == 1
    assert "s3cret" not in kept[0]


def test_basic_authentication_takes_the_password_from_a_file(tmp_path):
    (tmp_path / "password").write_text("pw\n")
    access = Access(user="ada", password_file=tmp_path / "password")
    assert access.all_headers()["Authorization"] == "Basic YWRhOnB3"


def test_a_certificate_of_ones_own_is_trusted_by_its_file(fake, tmp_path):
    with serving(fake, secure=True) as at:
        lake = gpuledger.open(tmp_path / "lake")
        with pytest.raises(ServerFault, match=r"(?s)no secure connection.*--ca FILE"):
            lake.pull(f"prometheus+https://{at}", since=START, until=START + HOUR)
        result = lake.pull(f"prometheus+https://{at}", since=START, until=START + HOUR, ca=FIXTURES / "authority.pem")
        assert result.rows_added == all_rows(1)
        with pytest.raises(FileFault, match="certificate"):
            lake.pull(f"prometheus+https://{at}", ca=Path(__file__))


def test_https_to_a_server_without_it_is_explained(fake, at, tmp_path):
    with pytest.raises(ServerFault, match=r"(?s)does not speak https.*prometheus://"):
        gpuledger.open(tmp_path / "lake").pull(f"prometheus+https://{at}")


def test_the_command_shows_what_came_and_what_to_do_next(fake, at, tmp_path, capsys):
    window = ["--since", str(utc(START)), "--until", str(utc(START + 4 * HOUR)), "--lake", str(tmp_path / "lake")]
    command = ["import", f"prometheus://{at}", *window, "--header", "X-Scope-OrgID: a"]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert f"{all_rows()} rows added" in shown
    assert "read from the server" in shown
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_added"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.csv", "--since", "2026-01-20"], "--since is for servers"),
        (["x.csv", "prometheus://h"], "a server is imported by itself"),
        (["prometheus://h", "--header", "nonsense"], "--header"),
        (["prometheus://h", "--user", "a", "--bearer-file", "b"], "both given"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments, words, tmp_path, capsys):
    assert run(["import", *arguments, "--lake", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_clock_that_is_off_is_noted(fake, at, tmp_path):
    fake.before = lambda path, params: None
    web = Web(f"http://{at}")
    web._clock = lambda _date: setattr(web, "skew_s", 3600.0)
    result = pull(Lake(tmp_path), Prometheus(web), since_ms=START, until_ms=START + HOUR)
    assert any("clock" in note for note in result.notes)


@pytest.mark.parametrize(
    ("address", "root"),
    [
        ("prometheus://h:9090", "http://h:9090"),
        ("prometheus://h:9090/", "http://h:9090"),
        ("prometheus+https://h/api/prom", "https://h/api/prom"),
        ("prometheus+https://h/select/0/prometheus/api/v1", "https://h/select/0/prometheus"),
    ],
)
def test_addresses(address, root):
    assert is_server(address)
    assert api_root(address) == root


@pytest.mark.parametrize("address", ["prometheus://", "prometheus:///x", "prometheus://me:pw@h"])
def test_addresses_that_cannot_be_used(address):
    with pytest.raises(InputError) as caught:
        api_root(address)
    assert "pw@" not in str(caught.value)


def test_words_in_a_query_mean_themselves():
    assert one_of(["a.b", 'c"d', "e|f"]) == 'a\\\\.b|c\\"d|e\\\\|f'
