"""The sections of the report: what the results of every benchmark look like in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from markdown_parts import cells, graph_title, plot, ratio, table

Document = dict[str, Any]


def peers(document: Document) -> Iterator[str]:
    """One table per graph, and what each program computes."""
    computes: dict[str, str] = {}
    for result in document["graphs"]:
        yield graph_title(result["graph"]) + "; blocks of {float32} (float32), {float64} (float64).".format(
            **result["block_sizes"]
        )
        yield ""
        rows = []
        for row in result["rows"]:
            computes[row["program"]] = row["computes"]
            rows.append(
                [
                    row["program"],
                    f"{row['milliseconds']:.3g}",
                    ratio(row["ratio_fixed"]),
                    ratio(row["ratio_tight"]),
                    "" if row["overlap"] is None else f"{row['overlap']:.2%}",
                    "" if row["l1"] is None else f"{row['l1']:.0e}",
                    "" if row["l1_to_solution"] is None else f"{row['l1_to_solution']:.0e}",
                    f"{row['queries']} x {row['rounds']}",
                ]
            )
        header = ["program", "ms a query", "/ seedrank 10 it.", "/ seedrank 1e-10", "top-100 in common", "L1"]
        yield from table([*header, "L1 to the solution", "queries x rounds"], rows)
        yield ""
        if result["job"]:
            stages = ", ".join(f"{name} {value:.2f}" for name, value in result["job"]["stages"].items())
            yield f"The whole job, {result['job']['queries']:,} queries, seconds by stage: {stages}."
            yield ""
        for skipped in result["skipped"]:
            yield f"- left out: {skipped['program']}: {skipped['reason']}"
        if result["skipped"]:
            yield ""
    yield from table(["program", "computes"], [list(pair) for pair in computes.items()], column="---")
    yield from plot("peers")


def product(document: Document) -> Iterator[str]:
    """One table per graph: columns are widths."""
    for result in document["graphs"]:
        yield graph_title(result["graph"]) + "; G edge-columns a second (seedrank's over it)."
        yield ""
        speeds = result["giga_edge_columns_per_second"]
        names = next(iter(speeds.values()))
        own = next(iter(names))
        rows = [[name, *(f"{of[name]:.1f} ({of[own] / of[name]:.2f}x)" for of in speeds.values())] for name in names]
        yield from table(["program", *(f"B {width}" for width in speeds)], rows)
        yield ""


def convergence(document: Document) -> Iterator[str]:
    """One table for all graphs."""
    header = ["graph", "damping", "precision", "solver", "products, mean", "worst", "power iteration, worst"]
    rows = [
        [
            *cells(row, graph="", damping="g", precision="", solver="", products_mean=".1f", products_worst=""),
            *cells(row, products_of_power_worst="", bound=".1e", true_error=".1e"),
            "yes" if row["bound_holds"] else "**no**",
        ]
        for row in document["rows"]
    ]
    yield from table([*header, "bound reported", "true L1", "bound holds"], rows)


def build(document: Document) -> Iterator[str]:
    """One row per kind of ids."""
    rows = [
        [
            row["ids"],
            f"{row['rows']:,}",
            f"{sum(row['bare'].values()):.2f}",
            f"{row['build']['total']:.2f}",
            ratio(row["ratio"]),
            f"{row['bytes_an_edge']:.0f}",
            ", ".join(f"{stage} {value:.2f}" for stage, value in row["build"].items() if stage != "total"),
        ]
        for row in document["rows"]
    ]
    header = ["ids", "edges", "bare pyarrow, s", "build, s", "ratio", "peak bytes an edge", "stages, s"]
    yield from table(header, rows)


def larger_build(document: Document) -> Iterator[str]:
    """One row per limit."""
    rows = [
        [
            name,
            f"{took['total_seconds']:.1f}",
            f"{took['peak_bytes'] / 1e6:,.0f}",
            "-" if took["written_bytes"] is None else f"{took['written_bytes'] / 1e9:.1f}",
            ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in took["seconds"].items()),
        ]
        for name, took in (
            ("as much as it wants", document["free"]),
            (f"{document['parameters']['limit_gib']} GiB of addresses", document["limited"]),
        )
    ]
    same = "the same bytes" if document["same_store"] else "**other bytes**"
    yield f"{document['parameters']['rows']:,} rows; {ratio(document['ratio'])} the time under the limit, {same}."
    yield ""
    yield from table(["memory", "seconds", "peak, MB", "written, GB", "stages, s"], rows)


def larger_than_memory(document: Document) -> Iterator[str]:
    """One row per way to keep the graph."""
    sizes, graph = document["parameters"], document["graph"]
    limit = f"{sizes['limit_gib']} GiB ({document['limit']})"
    names = {"resident": "all, in it", "streamed": "all, streamed", "limited": limit}
    rows = [
        [
            *(names[label], took["graph_memory"], f"{took['stages']['score']:.1f}", f"{took['seconds']:.1f}"),
            *(f"{took['peak_bytes'] / 1e6:,.0f}", f"{took['bytes_read'] / 1e9:.2f}"),
            f"{took['bytes_from_disk'] / 1e9:.2f}",
        ]
        for label, took in ((label, document[label]) for label in names)
        if took is not None
    ]
    fits = "fits" if document["resident_fits_the_limit"] else "does not fit"
    yield (
        f"{graph['edges']:,} edges, {graph['nodes']:,} nodes, store of {graph['store_bytes'] / 1e6:,.0f} MB; "
        f"{sizes['queries']} queries in blocks of {sizes['block_size']}, ten iterations. "
        f"{'The same' if document['same_files'] else '**Other**'} result files; held in memory the graph {fits} the "
        "limit. Peaks count mapped files and libraries."
    )
    yield ""
    yield from table(["memory", "graph", "scoring, s", "job, s", "peak, MB", "read, GB", "from disk, GB"], rows)


def fusion(document: Document) -> Iterator[str]:
    """One row per rule and number of queries."""
    rows = [
        [
            *cells(row, rule="", queries=",", hits=",", seconds=".2f", bare_read_seconds=".2f"),
            f"{row['peak_bytes'] / 1e6:,.0f}",
        ]
        for row in document["rows"]
    ]
    yield from table(["rule", "queries", "hits", "seconds", "bare read, s", "peak MB"], rows)


def rerank(document: Document) -> Iterator[str]:
    """One row per way to rank the hits of one query in process."""
    rows = [
        [*cells(row, way="", mean_ms=".1f", median_ms=".1f", p95_ms=".1f"), f"{row['paper_over_mean']:.0f}x"]
        for row in document["rows"]
    ]
    paper = f"{document['parameters']['paper_seconds']} s of the MemGraphRAG paper over the mean"
    yield from table(["one query, one thread", "mean, ms", "median, ms", "95 %, ms", paper], rows)


def scaling(document: Document) -> Iterator[str]:
    """One line per curve, and the plot."""
    rows = [
        [
            curve["curve"],
            f"{curve['exponent']:.2f}",
            ", ".join(f"{value:,g}: {time:.3g}" for value, time in curve["milliseconds_a_query"]),
        ]
        for curve in document["curves"]
    ]
    yield from table(["growing", "exponent of the time a query", "value: ms a query"], rows, column="---")
    yield from plot("scaling")


def profile(document: Document) -> Iterator[str]:
    """Seconds by function, and the product beside what the memory would allow."""
    product = document["product"]
    milliseconds = {
        name: f"{1e3 * product[name]:.1f} ms" for name in ("seconds", "seconds_at_least", "seconds_at_most")
    }
    yield (
        f"{graph_title(document['graph'])}; {document['queries']:,} queries, {document['seconds']:.1f} s, start of "
        f"Python included. Copying: {document['copy_bytes_per_second'] / 1e9:.1f} GB/s. A product of "
        f"{product['width']} columns: {milliseconds['seconds']}; moving every byte once would take "
        f"{milliseconds['seconds_at_least']}, a row of the block for every entry {milliseconds['seconds_at_most']}."
    )
    yield ""
    rows = [
        [name, f"{seconds:.2f}", f"{seconds / document['seconds']:.1%}"]
        for name, seconds in document["seconds_by_function"].items()
    ]
    yield from table(["innermost function", "seconds", "share"], rows)


def recall(document: Document) -> Iterator[str]:
    """Walks, traversals beside networkx, queries with paths."""
    rows = [
        [f"{row['graph']}, {row['edges']}, {row['anchors']} anchors"]
        + [f"{value:.1f}" for value in row["million_steps_a_second"].values()]
        for row in document["walks"]
    ]
    threads = list(document["walks"][0]["million_steps_a_second"])
    yield from table(["walks, M steps a second", *(f"{count} threads" for count in threads)], rows)
    yield ""
    traversals = document["traversals"]
    rows = [[name, f"{value:.3f}"] for name, value in traversals["milliseconds_a_query"].items()]
    title = f"two hops, {traversals['graph']}, {traversals['visited_nodes']:,.0f} nodes"
    yield from table([title, "ms a query"], rows)
    yield ""
    formats = {"graph": "", "method": "", "queries": ",", "seconds": ".2f", "paths": ",", "seconds_of_paths": ".2f"}
    rows = [cells(row, **formats) for row in document["paths"]]
    yield from table(["graph", "method", "queries", "seconds", "paths", "seconds of paths"], rows)


def startup(document: Document) -> Iterator[str]:
    """One row per command."""
    rows = [cells(row, command="", minimum=".3f", median=".3f") for row in document["rows"]]
    yield from table(["fresh process", "minimum, s", "median, s"], rows)


def memory(document: Document) -> Iterator[str]:
    """Peaks beside their formulas."""
    rows = [
        [row["what"], f"{row['peak_bytes'] / 1e6:,.0f}", f"{row['formula_bytes'] / 1e6:,.0f}", f"{row['ratio']:.2f}"]
        for row in (document["build"], document["score"])
    ]
    yield from table(["command", "peak, MB", "formula, MB", "ratio"], rows)


def row_groups(document: Document) -> Iterator[str]:
    """One row per file."""
    rows = [
        [
            f"{row['rows']:,} rows in {row['row_groups']:,}",
            f"{row['peak_bytes'] / 1e6:,.0f}",
            f"{row['store_bytes'] / 1e6:,.0f}",
            f"{row['ratio']:.2f}",
            f"{row['seconds']:.1f}",
        ]
        for row in (document["one"], document["thousand"], document["thousand_in_one"])
    ]
    yield from table(["row groups", "peak of build, MB", "graph store, MB", "ratio", "seconds"], rows)


def workers(document: Document) -> Iterator[str]:
    """Three ways to run a job, the price of a part, and kills."""
    speed, price, kills = document["speed"], document["price"], document["kills"]
    stages = ["start_workers", "prepare_workers", "score", "total"]
    yield from table(
        [graph_title(speed["graph"]), *(f"{stage}, s" for stage in stages)],
        [
            [way, *(f"{timings[stage]:.1f}" if stage in timings else "" for stage in stages)]
            for way, timings in speed["seconds"].items()
        ],
    )
    yield (
        f"\nTwo workers score {speed['queries']:,} queries in {speed['parts']} parts {ratio(speed['ratio'])} as fast "
        f"as one, and {ratio(speed['against_threads'])} as fast as one process with two threads. A part costs "
        f"{price['overhead_ms']:.0f} ms beside its work. {kills['identical']} of {len(kills['rows'])} runs in which a "
        "worker was killed at a random moment end with the bytes of an undisturbed run, after "
        f"{min(row['seconds'] for row in kills['rows']):.0f} to {max(row['seconds'] for row in kills['rows']):.0f} s "
        f"instead of {kills['seconds_without']['total']:.0f}."
    )


def fuzz(document: Document) -> Iterator[str]:
    """How many inputs ended how."""
    codes = ", ".join(f"{count:,} with {code}" for code, count in document["by_exit_code"].items())
    yield (
        f"{document['inputs']:,} inputs: {codes}; the slowest took {document['slowest_s']:.1f} s. Processes that ended "
        f"otherwise: {len(document['failures'])}."
    )
    for failure in document["failures"]:
        yield f"- {failure.splitlines()[0]}"


def kills(document: Document) -> Iterator[str]:
    """How often a run was ended, and whether it was whole after the same command."""
    for name, signal in document["signals"].items():
        codes = ", ".join(f"{count} ended with {code}" for code, count in signal["by_exit_code"].items())
        yield (
            f"- {name}, {signal['times']} times at random moments of a run of {document['uninterrupted_s']:.1f} s and "
            f"{document['parameters']['parts']} parts: {codes}; {signal['between_first_and_last_part']} had some of "
            f"their parts. Not the same bytes after the same command: {len(signal['wrong'])}."
        )


def many_queries(document: Document) -> Iterator[str]:
    """Memory and time of few and of many queries."""
    parameters = document["parameters"]
    yield (
        f"2^{parameters['scale']} ids, {parameters['edges']:,} edges, method `{parameters['method']}`, five hits a "
        f"query. The peak grows by {document['growth_bytes']['hits'] / 1e6:.0f} MB with hits, by "
        f"{document['growth_bytes']['all_nodes'] / 1e6:.0f} MB with `--all-nodes`."
    )
    yield ""
    rows = [
        [name, f"{run['peak_bytes'] / 1e6:,.0f}", f"{run['seconds']:.1f}", f"{run['stages_s']['score']:.1f}"]
        for name, run in document.items()
        if isinstance(run, dict) and "peak_bytes" in run
    ]
    yield from table(["queries", "peak, MB", "seconds", "of them scoring"], rows)


def halving(document: Document) -> Iterator[str]:
    """The same job with less and less room."""
    rows = [
        [
            "all" if run["room_bytes"] is None else f"{run['room_bytes'] / 1e6:,.0f} MB",
            str(run["planned"]),
            str(run["final"]),
            f"{run['seconds']:.1f}",
            "yes" if run["same_files"] else "**no**",
        ]
        for run in document["runs"]
    ]
    yield from table(["room beside the graph", "queries planned together", "in the end", "seconds", "same files"], rows)


def object_store(document: Document) -> Iterator[str]:
    """Seconds and requests of runs on a disk and at an object store."""
    parameters = document["parameters"]
    same = "The same candidates." if document["same_files"] else "**Other candidates.**"
    yield f"{parameters['queries']:,} queries in {parameters['parts']} parts. {same}"
    yield ""
    rows = [
        [name, f"{run['seconds']:.1f}", ", ".join(f"{count} {method}" for method, count in run["requests"].items())]
        for name, run in document["runs"].items()
    ]
    yield from table(["run", "seconds", "requests"], rows)


SECTIONS: dict[str, tuple[str, Callable[[Document], Iterator[str]]]] = {
    "peers": ("Beside other programs", peers),
    "product": ("The product beside C", product),
    "scaling": ("How the time of a query grows", scaling),
    "profile": ("Where the seconds of a job go", profile),
    "build": ("Building a graph store", build),
    "larger_build": ("Building with less memory than the edges need", larger_build),
    "larger_than_memory": ("Scoring with less memory than the graph needs", larger_than_memory),
    "fusion": ("Fusing the lists of three sources", fusion),
    "rerank": ("One query in process", rerank),
    "recall": ("Walks, traversals and paths", recall),
    "startup": ("Start-up", startup),
    "memory": ("Peak memory", memory),
    "many_queries": ("From few queries to many", many_queries),
    "workers": ("Workers", workers),
    "row_groups": ("Large and small row groups", row_groups),
    "fuzz": ("Inputs that should not be there", fuzz),
    "halving": ("Blocks that do not fit", halving),
    "object_store": ("Runs at an object store", object_store),
    "kills": ("Runs that are killed", kills),
    "convergence": ("Products to an L1 error of 1e-6", convergence),
}
