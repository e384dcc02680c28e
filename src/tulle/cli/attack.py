"""``tulle attack``: what somebody learns from a release, and the most that anybody could."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import options
from tulle.cli.common import CHECK_FAILED, command, print_json, printer
from tulle.core.errors import InputError

if TYPE_CHECKING:
    from tulle.attacks.report import AttackReport
    from tulle.genomes.network import TraitNetwork

app = typer.Typer(
    help="Attack what was released, and compare with what its guarantee allows.",
    no_args_is_help=True,
)

Released = Annotated[
    Path, typer.Argument(metavar="RELEASE", help="A release, as JSON.", show_default=False)
]
PairOption = Annotated[
    str | None, typer.Option("--pair", metavar="U,V", help="Two nodes, by number from 0.")
]
Prior = Annotated[str | None, typer.Option("--prior", help="How likely an edge is beforehand.")]
CatalogueFile = Annotated[
    Path | None, typer.Option("--catalogue", help="Published associations: a GWAS catalogue.")
]
TraitReleases = Annotated[
    list[str] | None,
    typer.Option(
        "--release",
        metavar="TRAIT=FILE",
        help="A release of allele counts for one trait, in place of a catalogue; repeat it.",
    ),
]
GenotypeFile = Annotated[
    Path,
    typer.Option("--genotypes", help="The genotypes that the adversary has: .csv, .vcf, .bed."),
]
Prevalence = Annotated[
    list[str],
    typer.Option(
        "--prevalence",
        metavar="[TRAIT=]SHARE",
        help="How common a trait is; without a name, of all others. Repeat it.",
    ),
]
KnownTraits = Annotated[
    list[str], typer.Option("--knows", metavar="TRAIT", help="A trait of the target; repeat it.")
]


@app.command()
@command
def edge(
    release: Released,
    pair: PairOption = None,
    prior: Prior = None,
    as_json: options.Json = False,
) -> None:
    """Infer edges from a released topology; with --pair, one of them."""
    from tulle.attacks import edge_inference
    from tulle.core.release import Release

    chosen = None if pair is None else _pair(pair)
    _show(edge_inference(Release.load(release), pair=chosen, prior=prior), as_json)


@app.command()
@command
def count(
    release: Released,
    known: Annotated[
        Path, typer.Option("--known", help="Every other edge: a network that the adversary knows.")
    ],
    pair: Annotated[
        str, typer.Option("--pair", metavar="U,V", help="Two nodes, by number from 0.")
    ],
    prior: Annotated[str, typer.Option("--prior", help="How likely the edge is.")] = "0.5",
    nodes: options.Nodes = None,
    as_json: options.Json = False,
) -> None:
    """Infer one edge from a released count, knowing all others."""
    from tulle.attacks import count_inference
    from tulle.core.release import Release

    graph = options.Network(known, nodes, None, (), None).read()
    found = count_inference(Release.load(release), pair=_pair(pair), known=graph, prior=prior)
    _show(found, as_json)


@app.command()
@command
def trait(
    name: Annotated[str, typer.Argument(metavar="TRAIT", help="The trait to infer.")],
    genotypes: GenotypeFile,
    prevalence: Prevalence,
    catalogue: CatalogueFile = None,
    release: TraitReleases = None,
    as_json: options.Json = False,
) -> None:
    """Infer a trait of people whose genotypes are known: the mean belief over them."""
    from tulle.attacks import trait_inference

    network, profiles = _setting(catalogue, release, prevalence, genotypes)
    _show(trait_inference(network, profiles, name), as_json)


@app.command()
@command
def identity(
    genotypes: GenotypeFile,
    prevalence: Prevalence,
    knows: KnownTraits,
    catalogue: CatalogueFile = None,
    release: TraitReleases = None,
    as_json: options.Json = False,
) -> None:
    """Find the likeliest record of a target in an anonymous table, from traits of theirs."""
    from tulle.attacks import identity_inference

    network, profiles = _setting(catalogue, release, prevalence, genotypes)
    _show(identity_inference(network, profiles, traits=knows), as_json)


@app.command("new-trait")
@command
def new_trait(
    name: Annotated[str, typer.Argument(metavar="TRAIT", help="The trait to infer.")],
    genotypes: GenotypeFile,
    prevalence: Prevalence,
    knows: KnownTraits,
    catalogue: CatalogueFile = None,
    release: TraitReleases = None,
    as_json: options.Json = False,
) -> None:
    """Infer a further trait of a target whose record is in an anonymous table."""
    from tulle.attacks import new_trait_inference

    network, profiles = _setting(catalogue, release, prevalence, genotypes)
    _show(new_trait_inference(network, profiles, traits=knows, new=name), as_json)


def _setting(
    catalogue: Path | None, releases: list[str] | None, prevalence: list[str], genotypes: Path
) -> tuple[TraitNetwork, Any]:
    """Return the adversary's network and the genotypes that they have, as it counts them."""
    from tulle.genomes import Catalogue, Genotypes, TraitNetwork

    if (catalogue is None) == (not releases):
        raise InputError("Give either --catalogue or --release TRAIT=FILE, once per trait.")
    table = Genotypes.read(genotypes)
    if catalogue is not None:
        every = Catalogue.read(catalogue).only(snps=table.snps)
        shares = _shares(prevalence, every.traits)
        return _aligned(TraitNetwork(every, prevalence=shares), table)
    from tulle.core.release import Release

    loaded = {}
    for item in releases or ():
        name, mark, path = item.rpartition("=")
        if not mark or not name:
            raise InputError(f"--release is written TRAIT=FILE; got {item!r}.")
        loaded[name] = Release.load(path)
    letters = dict(zip(table.snps, table.counted, strict=True))
    shares = _shares(prevalence, tuple(loaded))
    network = TraitNetwork.from_releases(loaded, prevalence=shares, alleles=letters)
    return _aligned(network, table)


def _aligned(network: TraitNetwork, table: Any) -> tuple[TraitNetwork, Any]:
    if not network.snps:
        raise InputError("None of the published SNPs is in the table of genotypes.")
    return network, network.align(table)


def _shares(written: list[str], traits: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    others = None
    for item in written:
        name, mark, share = item.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            raise InputError(f"--prevalence is written TRAIT=SHARE; got {item!r}.") from None
        if mark:
            found[name] = value
        else:
            others = value
    unknown = [name for name in found if name not in traits]
    if unknown:
        raise InputError(f"There is no trait {unknown[0]!r} with SNPs in this table.")
    if others is not None:
        found = dict.fromkeys(traits, others) | found
    return found


def _pair(written: str) -> tuple[int, int]:
    parts = written.split(",")
    try:
        first, second = (int(part) for part in parts)
    except ValueError:
        raise InputError(f"--pair is written U,V with two node numbers; got {written!r}.") from None
    return first, second


def _show(found: AttackReport, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
    else:
        from tulle.cli.tables import facing

        drawn = facing()
        for name, content in found.lines():
            drawn.add_row(name, content)
        out = printer()
        out.print(f"Attack {found.attack}: {found.measure}", style="bold")
        out.print(drawn)
    if not found.within:
        if not as_json:
            printer().print("More than the guarantee allows: it cannot hold.", style="bold red")
        raise typer.Exit(CHECK_FAILED)
