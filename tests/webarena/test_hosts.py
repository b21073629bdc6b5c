"""The URLs that may be visited, and Chromium's agreement on their hosts."""

import json
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.webarena.browser.hosts import HostRules
from tests.trying import examples
from tests.webarena.conftest import Agent

RULES = HostRules.of(
    mapped={"shop.test": "127.0.0.1:9", "*.wiki.test:8080": "127.0.0.1:9"},
    urls=["http://10.0.0.5:7770/start", "https://git.example", "http://[::1]:3000", "http://LOCALHOST:9999"],
)
ALLOWED = [
    "http://shop.test",
    "http://shop.test/",
    "http://shop.test:80/a?b=c#d",
    "http://shop.test:/a",
    "HTTP://SHOP.TEST/a",
    "http://en.wiki.test:8080/x",
    "http://a.b.wiki.test:8080/",
    "http://10.0.0.5:7770/admin",
    "https://git.example/x",
    "https://git.example:443/x",
    "http://[::1]:3000/",
    "http://[0:0:0:0:0:0:0:1]:3000/",
    "http://localhost:9999/",
    "http://shop.test/a//b?u=http://evil.test/#//evil.test",
    "http://shop.test?@evil.test",
    "http://shop.test#@evil.test",
    "  http://shop.test/  ",
    "about:blank",
]
REFUSED = [
    # other schemes
    "file:///etc/passwd",
    "file://shop.test/etc/passwd",
    "FILE:/etc/passwd",
    "data:text/html,<p>",
    "javascript:alert(1)",
    "javascript:1",
    "JaVaScRiPt://shop.test/%0aalert(1)",
    "view-source:http://shop.test/",
    "chrome://version",
    "chrome-extension://x/",
    "devtools://devtools/",
    "ftp://shop.test/",
    "ws://shop.test/",
    "wss://shop.test/",
    "blob:http://shop.test/x",
    "filesystem:http://shop.test/x",
    "about:srcdoc",
    "about:blank#x",
    "about:version",
    "mailto:a@shop.test",
    "shop.test://x",
    "weird_scheme://shop.test/",
    # other hosts and ports
    "http://evil.test/",
    "http://shop.test.evil.com/",
    "http://evilshop.test/",
    "http://eviltest/",
    "http://wiki.test:8080/",
    "http://evilwiki.test:8080/",
    "http://en.wiki.test/",
    "http://shop.test:8080/",
    "http://shop.test:0/",
    "https://shop.test/",
    "http://git.example/",
    "http://10.0.0.5/",
    "http://10.0.0.6:7770/",
    "http://localhost/",
    "http://shop.test./",
    "//shop.test/",
    # IP addresses in all notations
    "http://127.0.0.1:9/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://167772165:7770/",  # 10.0.0.5
    "http://10.0.0.05:7770/",
    "http://[::ffff:10.0.0.5]:7770/",
    "http://[::ffff:127.0.0.1]:9/",
    "http://[::1]/",
    "http://[::1%25lo]:3000/",
    "http://0/",
    "http://127.0.0.1.nip.io/",
    # the host is not the apparent one
    "http://shop.test@evil.test/",
    "http://shop.test:80@evil.test/",
    "http://evil.test@shop.test/",
    "http://@shop.test/",
    "http://a:b@shop.test/",
    "http://evil.test\\@shop.test/",
    "http://evil.test#@shop.test/",
    "http://evil.test?@shop.test/",
    "http:\\\\shop.test/",
    "http:/\\shop.test/",
    "http:/shop.test/",
    "http:///shop.test/",
    "http:shop.test",
    "http://shop.test\t.evil.com/",
    "ht\ntp://shop.test/",
    "http://shop.test/\x00",
    "java\tscript:alert(1)",
    "http://sh op.test/",
    "http://%73hop.test/",
    "http://shop%2etest/",
    "http://ｓhop.test/",
    "http://shop。test/",
    "http://shop\u00ad.test/",
    "http://evil.test／.wiki.test:8080/",
    "http://evil.test％2f.wiki.test:8080/",
    "http://.wiki.test:8080/",
    "http://*.wiki.test:8080/",
    # not URLs
    "",
    "http://",
    "http://[",
    "http://:80/",
    "http://shop.test:80:80/",
    "http://shop.test:x/",
    "http://shop.test:99999/",
    "http://shop.test:-80/",
    "http://shop.test:８０/",
]


@pytest.mark.parametrize("url", ALLOWED)
def test_allowed_urls_are_accepted(url: str) -> None:
    assert RULES.check(url).lower() == url.strip().lower().replace("?@evil", "?@evil") and RULES.allows(url)


@pytest.mark.parametrize("url", REFUSED)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidAction):
        RULES.check(url)
    assert not RULES.allows(url)


def test_http_is_the_default_scheme() -> None:
    assert RULES.check("shop.test/a//b") == "http://shop.test/a//b"
    assert RULES.check("shop.test:80") == "http://shop.test:80"
    assert RULES.check("localhost:9999/x") == "http://localhost:9999/x"


def test_refusals_explain_the_reason_to_the_model() -> None:
    messages = {}
    for url in ("file:///etc/passwd", "http://evil.test/x", "http://u@shop.test/", "http://["):
        with pytest.raises(InvalidAction) as error:
            RULES.check(url)
        messages[url] = str(error.value)
    assert (
        "http:// or https://" in messages["file:///etc/passwd"]
        and "'evil.test' cannot be visited" in messages["http://evil.test/x"]
    )
    assert "user name" in messages["http://u@shop.test/"] and "not an address" in messages["http://["]


def test_resolver_rules_cover_the_allowed_hosts_only() -> None:
    assert RULES.resolver_rules.split(", ") == [
        "MAP *.wiki.test:8080 127.0.0.1:9",
        "MAP shop.test:80 127.0.0.1:9",
        "MAP 10.0.0.5:7770 10.0.0.5:7770",
        "MAP [::1]:3000 [::1]:3000",
        "MAP git.example:443 git.example:443",
        "MAP localhost:9999 localhost:9999",
        "MAP * ~NOTFOUND",
    ]
    assert HostRules().resolver_rules == "MAP * ~NOTFOUND" and not HostRules().allows("http://shop.test/")


@pytest.mark.parametrize(
    "name", ["", "shop.test/", "shop test", "a,b", "MAP * 127.0.0.1", "shop.test:0", "shop.test:70000", "*", "a.*"]
)
def test_invalid_host_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a host is written as"):
        HostRules.of(mapped={name: "127.0.0.1:9"})


@pytest.mark.parametrize(
    "url",
    ["", "shop.test", "ftp://shop.test", "http://", "http://a,b/", "http://*.test/", "http://a b/", "http://a:0/"],
)
def test_invalid_site_urls_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the address of a site"):
        HostRules.of(urls=[url])


PIECES = st.sampled_from(
    [
        "http",
        "https",
        "file",
        "://",
        ":",
        "//",
        "/",
        "\\",
        "@",
        "?",
        "#",
        ".",
        "%2e",
        "%00",
        "[",
        "]",
        "::1",
        ":80",
        " ",
        ":8080",
        "shop",
        "test",
        "shop.test",
        "en.wiki.test:8080",
        "evil.com",
        "127.0.0.1",
        "127.1",
        "x",
        "\t",
        "ｓ",
        "。",
        "／",
        "K",
        "ß",
        "\u00ad",
    ]
)
TRICKS = st.one_of(
    st.lists(PIECES, max_size=9).map("".join),
    st.lists(PIECES, max_size=6).map(lambda parts: "http://" + "".join(parts) + ".wiki.test:8080/"),
    st.lists(PIECES, max_size=6).map(lambda parts: "http://shop.test" + "".join(parts)),
    st.text(max_size=20).map(lambda text: f"http://{text}.wiki.test:8080/"),
    st.text(max_size=20).map(lambda text: f"http://shop.test{text}"),
)


@pytest.mark.slow
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(urls=st.lists(TRICKS, min_size=100, max_size=100))
def test_chromium_and_the_rules_agree_on_hosts(agent: Agent, urls: list[str]) -> None:
    allowed = [RULES.check(url) for url in urls if RULES.allows(url)]
    parts_of = "const p = new URL(u); return [p.protocol, p.hostname, p.port, p.username + p.password]"
    parse = f"u => {{ try {{ {parts_of} }} catch {{ return null }} }}"
    parsed = agent.js(f"{json.dumps(allowed)}.map({parse})")
    for url, parts in zip(allowed, parsed, strict=True):
        if parts is None or url == "about:blank":
            continue  # Chromium rejects the URL
        scheme, host, port, user = parts
        assert user == "" and RULES.allows(f"{scheme}//{host}:{port}/"), (url, parts)
        assert host.endswith(".wiki.test") or host == urlsplit(url).hostname, (url, parts)
