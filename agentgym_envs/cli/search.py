"""`agentgym search`: build, query and serve an index, survey files of questions, and check a judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from agentgym_envs.cli import completion, serve
from agentgym_envs.cli.common import Json, Overwrite, cannot_write, print_json, stderr, stdout
from agentgym_envs.cli.envs import find_env, parse_env_args
from agentgym_envs.cli.lazy import Interrupted
from agentgym_envs.cli.search_agreement import agreement_command
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.search.retrieval.base import MAX_TOP_K, Hit, Retriever
from agentgym_envs.search.retrieval.engines import ENGINES, describe_helps, find_engine
from agentgym_envs.search.retrieval.retrievers import RETRIEVERS

_SHOWN_CHARS = 300
_SOURCES = ("flashrag",)
_ABOUT = ("corpus", "passages", "sha256")

Corpus = Annotated[
    Path,
    typer.Argument(
        metavar="CORPUS.jsonl",
        help='One JSON object per line, {"id", "contents"} or {"id", "title", "text"}; .gz is accepted. Or the folder '
        "of an index, to add an engine to it.",
    ),
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of the index; default: CORPUS.index next to the corpus.")
]
Engine = Annotated[
    str,
    typer.Option(
        help=f"{describe_helps({name: engine.help for name, engine in ENGINES.items()})}.",
        autocompletion=completion.choices(*ENGINES),
    ),
]
AnyEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        help=f"{describe_helps({name: kind.help for name, kind in RETRIEVERS.items()})}.",
        autocompletion=completion.choices(*RETRIEVERS),
    ),
]
Model = Annotated[
    str | None, typer.Option(help="dense: the encoder, a folder or name of sentence-transformers, or hashing.")
]
EngineOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="An option of the engine, such as device=cpu. Can be repeated.",
    ),
]
BuildOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="An option of the ranking, such as ranking=natural or title_weight=1.5. Can be repeated.",
    ),
]
Index = Annotated[
    Path | None, typer.Argument(metavar="INDEX", help="Folder of the index; default: the embedded corpus.")
]
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[INDEX] QUERY", help="Folder of the index (default: the embedded corpus), and the query in quotes."
    ),
]
TopK = Annotated[int, typer.Option("--top-k", "-k", min=1, max=MAX_TOP_K, help="Number of passages to show.")]
Envs = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="ENV", help="Also serve this environment. Can be repeated.", autocompletion=completion.envs
    ),
]
Source = Annotated[
    str, typer.Option(help="Format of the files: flashrag.", autocompletion=completion.choices(*_SOURCES))
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that contains nq/test.jsonl and so on.")]


def index_command(
    corpus: Corpus,
    out: Out = None,
    engine: Engine = "tantivy",
    model: Model = None,
    option: BuildOptions = None,
    overwrite: Overwrite = False,
) -> None:
    """Build the index of a corpus in Search-R1's format, or add an engine to an existing index.

    Run the same command again to resume an interrupted build.
    """
    from agentgym_envs.search.retrieval.building import extend_index, index_corpus, partial_of

    encodes = find_engine(engine).encodes
    if encodes and model is None:
        raise UsageError(f"--engine {engine} needs --model: a folder or name of sentence-transformers, or hashing")
    if not encodes and model is not None:
        raise UsageError(f"--model is the encoder of the engine dense; {engine} has none")
    options = parse_env_args(option, "--option", "ranking=natural") | ({} if model is None else {"encoder": model})
    if encodes and options.keys() - {"encoder"}:
        raise UsageError(f"--option chooses the ranking of tantivy and bm25s; {engine} ranks by its encoder")
    began = time.perf_counter()
    with _progress() as report:
        if corpus.is_dir():
            if out is not None and out.resolve() != corpus.resolve():
                raise UsageError(f"{corpus} is an index, and an engine is added to it in place: remove --out")
            folder = corpus
            manifest = extend_index(folder, engine=engine, options=options, overwrite=overwrite, report=report)
        else:
            folder = out or _default_index(corpus)
            with _resumable(folder, partial_of(folder)):
                manifest = index_corpus(
                    corpus, folder, engine=engine, options=options, overwrite=overwrite, report=report
                )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    contents = f"{manifest['passages']:,} passages of {manifest['corpus']} for {', '.join(manifest['engines'])}"
    cost = f"{size / 1e6:,.1f} MB; {time.perf_counter() - began:.1f} s"
    stdout().print(f"{folder} holds {contents} ({cost})", markup=False, soft_wrap=True)


def query_command(words: Words, top_k: TopK = 3, engine: AnyEngine = "tantivy", option: EngineOptions = None) -> None:
    """Search an index once and show the passages."""
    if len(words) > 2:
        raise UsageError(f"give one query, in quotes: {' '.join(words[-2:])!r:.80} are two words without quotes")
    if len(words) == 1 and (Path(words[0]) / "index.json").is_file():
        raise UsageError(f"{words[0]} is an index; add a query: agentgym search query {words[0]} QUERY")
    retriever, _ = open_or_embedded(
        Path(words[0]) if len(words) == 2 else None, engine, parse_env_args(option, "--option", "device=cpu")
    )
    began = time.perf_counter()
    hits = retriever.search([words[-1]], top_k)[0]
    duration = time.perf_counter() - began
    if hits:
        stdout().print(_hits_table(hits))
    found = f"{len(hits)} passages" if hits else "nothing was found"
    stdout().print(f"[dim]{found}; {retriever.describe()['engine']}, {1000 * duration:.1f} ms[/]", soft_wrap=True)


def serve_command(
    index: Index = None,
    engine: AnyEngine = "tantivy",
    option: EngineOptions = None,
    env: Envs = None,
    host: serve.Host = "127.0.0.1",
    port: serve.Port = 8000,
    workers: serve.Workers = None,
    max_sessions: serve.MaxSessions = 1024,
    token: serve.Token = None,
    token_file: serve.TokenFile = None,
    insecure: serve.Insecure = False,
    dialect: serve.Dialect = None,
    env_arg: serve.ServerEnvArgs = None,
) -> None:
    """Serve an index with the protocol of Search-R1's server (POST /retrieve) until Ctrl-C or SIGTERM."""
    serve.load_server()
    from agentgym_envs.http.retrieve import PATH, retrieve_routes

    address = serve.listen_address(host, port, token, token_file, insecure)
    ids = [find_env(name) for name in env or ()]
    options = parse_env_args(option, "--option", "device=cpu")
    arguments = {**_same_search(ids, index, engine, options), **parse_env_args(env_arg)}
    settings: dict[str, Any] = {"workers": workers, "max_sessions": max_sessions, "env_args": arguments}
    retriever, about = open_or_embedded(index, engine, options)
    corpus = f" over {about['corpus']}, {about['passages']:,} passages" if "passages" in about else ""
    serve.run_server(
        ids,
        address,
        dialects=dialect or (),
        mounts=[retrieve_routes(retriever, about)],
        say=lambda url: f"POST {url}{PATH} searches with the protocol of Search-R1's server: {about['engine']}{corpus}",
        **settings,
    )


def data_command(folder: Folder, source: Source = "flashrag", as_json: Json = False) -> None:
    """List the files of the published question sets: rows per file, and their task indices in AgentGym."""
    from agentgym_envs.search.questions.flashrag import survey

    if source not in _SOURCES:
        raise UsageError(f"--source takes {' or '.join(_SOURCES)}, not {source!r}")
    rows = survey(folder)
    if as_json:
        print_json({"source": source, "folder": str(folder), "files": [row._asdict() for row in rows]})
        return
    stdout().print(_survey_table(rows))
    for row in rows:
        if row.problem:
            stdout().print(f"{row.file} {row.problem}", style="yellow", markup=False, soft_wrap=True)


def open_or_embedded(
    index: Path | None, engine: str, options: Mapping[str, Any] | None = None
) -> tuple[Retriever, dict[str, Any]]:
    """Open an index or the embedded corpus; also return its engine and, if known, corpus, passages and sha256."""
    from agentgym_envs.search.corpus.embedded import embedded_index
    from agentgym_envs.search.retrieval.factory import open_retriever
    from agentgym_envs.search.retrieval.manifest import read_manifest

    if engine not in RETRIEVERS:
        raise UsageError(f"there is no engine {engine!r}; choose one of {', '.join(RETRIEVERS)}")
    retriever = open_retriever({"engine": engine, **(options or {})}, index)
    known = retriever.describe()
    if RETRIEVERS[engine].own_index:
        built = engine if engine in ENGINES else next(iter(ENGINES))
        known |= read_manifest(embedded_index(built) if index is None else index.resolve())
    return retriever, {"engine": engine, **{key: known[key] for key in _ABOUT if key in known}}


COMMANDS: Mapping[str, Callable[..., None]] = {
    "index": index_command,
    "query": query_command,
    "serve": serve_command,
    "data": data_command,
    "agreement": agreement_command,
}


def _same_search(ids: Sequence[str], index: Path | None, engine: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with which Search environments use the index of this server."""
    if not any(name.startswith("AgentGym/Search") for name in ids):
        return {}
    spec = {"engine": engine, **options} if options else engine
    return {"retriever": spec, **({} if index is None else {"index": str(index.resolve())})}


def _default_index(corpus: Path) -> Path:
    return corpus.with_name(corpus.name.removesuffix(".gz").removesuffix(".jsonl") + ".index")


@contextmanager
def _resumable(folder: Path, partial: Path) -> Iterator[None]:
    """Add to the message of an interruption or error that the same command resumes the build."""
    hint = f"the work so far is saved in {partial}; run the same command again to resume"
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {hint}") from None
    except (OSError, EnvError) as error:
        if isinstance(error, OSError) and not partial.exists():
            raise cannot_write("--out", folder, error) from None
        error.add_note(hint)
        raise


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar per stage on stderr, if that is a terminal."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    names = (TextColumn("{task.description:<8}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[done]}"))
    console = stderr()
    with Progress(
        *names, TimeElapsedColumn(), "left", TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total, done="")
            shown = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB" if stage == "reading" else f"{done:,} passages"
            bar.update(tasks[stage], completed=done, done=shown)

        yield report


def _hits_table(hits: list[Hit]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("", "right"), ("score", "right"), ("id", "left"), ("passage", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for rank, (passage, score) in enumerate(hits, 1):
        text = passage.text if len(passage.text) <= _SHOWN_CHARS else f"{passage.text[: _SHOWN_CHARS - 1]}…"
        shown = Text.assemble((passage.title, "bold"), "\n" if passage.title else "", text)
        table.add_row(str(rank), f"{score:.3f}", Text(passage.id), shown)
    return table


def _survey_table(rows: list[Any]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("group", "split", "file", "rows", "published", "AgentGym's numbers"):
        table.add_column(name, justify="right" if name in ("rows", "published") else "left")
    for row in rows:
        numbers = f"{row.first} to {row.last}"
        table.add_row(row.name, row.split, row.file, f"{row.rows:,}", f"{row.published:,}", numbers)
    return table
