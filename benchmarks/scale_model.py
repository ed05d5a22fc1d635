"""What one billion and one hundred billion edges take: bytes, blocks, hours and money, by formula from measured rates.

    python benchmarks/scale_model.py
    python benchmarks/scale_model.py --queries 1e6 --products 10 --useful 0.4 --price H200=2.5 --price cores=0.05

Prints the tables of docs/scale.md, where every symbol is explained. What was measured is read from ``results/*.json``;
what was not is an assumption, and an option. Runs in a blink: nothing is computed but the formulas.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace

from scale_formulas import DEFAULTS, GRAPHS, USABLE, WIDEST, Assumptions, Graph, machines, read


def table(header: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Lines of a Markdown table, and an empty one."""
    yield "| " + " | ".join(header) + " |"
    yield "| --- " + "| ---: " * (len(header) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def giga(count: float) -> str:
    """10^9 bytes, in three digits."""
    return f"{count / 1e9:,.0f}" if count >= 1e11 else f"{count / 1e9:.3g}"


def number(count: float) -> str:
    """A number in three digits, without an exponent."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def sizes() -> Iterator[str]:
    """What the graphs take at rest and while they are built."""
    larger = read("larger_build")
    rate = None if larger is None else larger["parameters"]["rows"] / larger["limited"]["total_seconds"]
    rows = (
        [
            f"{graph.name}: {graph.edges:.0e} edges, {graph.nodes:.0e} nodes",
            giga(graph.store_bytes),
            giga(graph.temporary_bytes),
            giga(8 * graph.nodes + 72 * graph.nodes),
            "not measured" if rate is None else number(graph.edges / rate / 3600),
        ]
        for graph in GRAPHS
    )
    header = ["graph", "store, GB", "temporary files of build, GB", "memory for nodes, GB", "hours of build, 2 cores"]
    yield from table(header, rows)


def whole_graph(graph: Graph, assumed: Assumptions) -> Iterator[str]:
    """One process holds the whole graph: width, time and money of all queries, machine by machine."""

    def rows() -> Iterator[list[str]]:
        for machine in machines(assumed):
            width = machine.width(graph)
            name, memory = machine.name, giga(machine.graph_bytes(graph))
            if not width:
                yield [name, memory, giga(graph.column_bytes), "**does not fit**", "-", "-", "-", "-"]
                continue
            product = machine.product_seconds(graph, width)
            hours = product * assumed.products * math.ceil(assumed.queries / width) / 3600
            yield [
                name,
                memory,
                giga(graph.column_bytes),
                str(width),
                number(product),
                number(product * assumed.products / width),
                number(hours),
                number(hours * machine.price),
            ]

    header = ["who", "graph, GB", "a column, GB", "columns", "s a product", "s a query", "hours of one", "money"]
    yield from table(header, rows())


def in_a_day(assumed: Assumptions) -> Iterator[str]:
    """Devices that finish all queries of the smaller graph in 24 hours; parts are independent, so they just add up."""

    def rows() -> Iterator[list[str]]:
        graph = GRAPHS[0]
        for machine in machines(assumed):
            width = machine.width(graph)
            hours = machine.product_seconds(graph, width) * assumed.products * assumed.queries / width / 3600
            count = math.ceil(hours / 24)
            yield [machine.name, f"{count:,}", number(24 * count * machine.price)]

    yield from table(["who", "for 24 hours", "money"], rows())


def limits() -> Iterator[str]:
    """Edges from which on one device does not hold the graph."""
    degree = GRAPHS[0].edges / GRAPHS[0].nodes
    rows = (
        [machine.name, *(f"{machine.largest(width, degree) / 1e9:.3g}" for width in (WIDEST, 16, 1))]
        for machine in machines(DEFAULTS)
        if machine.gpu
    )
    columns = [f"with {width} columns" if width > 1 else "with one" for width in (WIDEST, 16, 1)]
    yield from table(["10^9 edges at most, 20 a node", *columns], rows)


def partitioned(assumed: Assumptions) -> Iterator[str]:
    """The larger graph in pieces on many devices, one query at a time, as cuGraph does it."""

    def rows() -> Iterator[list[str]]:
        graph = GRAPHS[1]
        for machine in machines(assumed):
            if not machine.gpu:
                continue
            # 8 bytes an edge: half is room for the exchange of edges while the graph is made. A square of devices.
            count = math.ceil((8 * graph.edges + 29 * graph.nodes) / (USABLE * machine.memory))
            side = math.ceil(math.sqrt(count))
            count = side * side
            memory = machine.product_seconds(graph, 1) / count
            # A device gets the vector of its column of the square, and sends that of its row.
            link = 2 * 4 * graph.nodes / side / assumed.link
            seconds = assumed.products * (memory + link)
            hours = seconds * assumed.queries / 3600
            yield [
                machine.name,
                str(count),
                number(assumed.products * memory),
                number(assumed.products * link),
                number(seconds),
                number(seconds / 3600 * count * machine.price),
                number(hours / 24 / 365),
                number(hours * count * machine.price),
            ]

    header = ["who", "devices", "s in memory", "s on links", "s a query", "money a query", "years for all", "money"]
    yield from table(header, rows())


def streamed(assumed: Assumptions) -> Iterator[str]:
    """The larger graph read from disk once for every product of a block, on the server."""
    graph = GRAPHS[1]

    def rows() -> Iterator[list[str]]:
        host = machines(assumed)[1]
        for width in (1, 16, WIDEST):
            reading = 4 * graph.edges / assumed.disk
            product = max(reading, host.product_seconds(graph, width))
            yield [
                str(width),
                giga(width * graph.column_bytes),
                number(reading),
                number(product),
                number(product * assumed.products / width),
            ]

    yield from table(["columns", "block, GB", "s of reading a product", "s a product", "s a query"], rows())


def report(assumed: Assumptions) -> str:
    """All tables, as docs/scale.md has them."""
    rate = machines(assumed)[0].bandwidth
    lines = [
        f"{assumed.queries:,.0f} queries, {assumed.products} products each; {assumed.useful:.0%} of a GPU's bandwidth "
        f"(assumed), {rate / 1e9:.1f} GB/s on two cores (measured); links {assumed.link / 1e9:.0f} GB/s, disk "
        f"{assumed.disk / 1e9:.0f} GB/s, server {assumed.server / 1e9:.0f} GB/s (assumed); an hour costs "
        + ", ".join(f"{price:g} ({name})" for name, price in assumed.prices.items())
        + ".",
        "",
        "**At rest, and built without the memory for the edges**",
        "",
        *sizes(),
    ]
    for graph in GRAPHS:
        lines += [
            f"**{graph.name.capitalize()} edges, the whole graph in one memory**",
            "",
            *whole_graph(graph, assumed),
        ]
    lines += ["**One billion edges, all queries within a day**", "", *in_a_day(assumed)]
    lines += ["**Where one device ends**", "", *limits()]
    lines += ["**One hundred billion edges, partitioned, one query at a time**", "", *partitioned(assumed)]
    lines += ["**One hundred billion edges, streamed from disk on the server**", "", *streamed(assumed)]
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=float, default=DEFAULTS.queries, help="(default: %(default)s)")
    parser.add_argument("--products", type=int, default=DEFAULTS.products, help="a query (default: %(default)s)")
    parser.add_argument(
        "--useful", type=float, default=DEFAULTS.useful, help="share of bandwidth (default: %(default)s)"
    )
    parser.add_argument("--link", type=float, default=DEFAULTS.link, help="bytes a second (default: %(default)s)")
    parser.add_argument("--disk", type=float, default=DEFAULTS.disk, help="bytes a second (default: %(default)s)")
    parser.add_argument("--server", type=float, default=DEFAULTS.server, help="bytes a second (default: %(default)s)")
    parser.add_argument("--price", action="append", default=[], metavar="NAME=PRICE", help="of an hour")
    chosen = parser.parse_args()
    prices = dict(DEFAULTS.prices)
    for text in chosen.price:
        name, _, price = text.partition("=")
        if name not in prices:
            parser.error(f"no price of {name!r}; there are {', '.join(prices)}")
        prices[name] = float(price)
    given = {name: getattr(chosen, name) for name in ("queries", "products", "useful", "link", "disk", "server")}
    print(report(replace(DEFAULTS, prices=prices, **given)), end="")


if __name__ == "__main__":
    main()
