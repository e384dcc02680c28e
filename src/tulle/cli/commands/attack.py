"""``tulle attack``: what somebody learns from a release, and the most that anybody could."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tulle.cli import options
from tulle.cli.common import CHECK_FAILED, command, print_json, printer

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
        help="A release of allele counts for one trait, in place of a catalogue; may be repeated.",
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
        help="How common a trait is; without a name, of all others; may be repeated.",
    ),
]


@dataclass(frozen=True)
class Published:
    """What was published about traits, how common they are, and whose genotypes are known."""

    genotypes: GenotypeFile
    prevalence: Prevalence
    catalogue: CatalogueFile = None
    release: TraitReleases = None

    def read(self) -> tuple[TraitNetwork, Any]:
        """Return the adversary's network and the genotypes as it counts them."""
        from tulle.cli.adversary import read_network

        return read_network(self.catalogue, self.release, self.prevalence, self.genotypes)


KnownTraits = Annotated[
    list[str],
    typer.Option("--knows", metavar="TRAIT", help="A trait of the target; may be repeated."),
]
Members = Annotated[
    Path,
    typer.Option("--members", help="The names of those who took part, half of all: one a line."),
]
Reference = Annotated[
    Path,
    typer.Option(
        "--reference",
        help="People at large: a table snp,frequency, or genotypes from which it is counted.",
    ),
]
People = Annotated[
    Path,
    typer.Option(
        "--people",
        help="The targets, as .csv: a column for each known feature and for the outcome. With one "
        "for the sensitive feature, guesses are counted right or wrong.",
    ),
]
Sensitive = Annotated[
    str, typer.Option("--sensitive", metavar="FEATURE", help="The feature to guess.")
]
Marginal = Annotated[
    list[str],
    typer.Option(
        "--marginal",
        metavar="VALUE=SHARE",
        help="How common a value of the sensitive feature is; may be repeated.",
    ),
]
Unknown = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        metavar="FEATURE:VALUE=SHARE",
        help="How common a value of a feature is unknown to the adversary; may be repeated.",
    ),
]
Confusion = Annotated[
    str | None,
    typer.Option(
        "--confusion",
        metavar="A,B,C,D",
        help="How often the model is right: counts of actual by predicted class, row by row.",
    ),
]
Deviation = Annotated[
    float | None,
    typer.Option("--deviation", help="How far outcomes lie from a linear model's predictions."),
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
    from tulle.cli import adversary
    from tulle.core.release import Release

    chosen = None if pair is None else adversary.read_pair(pair)
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
    header: options.Header = None,
    as_json: options.Json = False,
) -> None:
    """Infer one edge from a released count, knowing all others."""
    from tulle.attacks import count_inference
    from tulle.cli import adversary
    from tulle.core.release import Release

    graph = options.Network(known, nodes, header=header).read()
    chosen = adversary.read_pair(pair)
    found = count_inference(Release.load(release), pair=chosen, known=graph, prior=prior)
    _show(found, as_json)


@app.command()
@command
def trait(
    name: Annotated[str, typer.Argument(metavar="TRAIT", help="The trait to infer.")],
    published: Published,
    as_json: options.Json = False,
) -> None:
    """Infer a trait of people whose genotypes are known: the mean belief over them."""
    from tulle.attacks import trait_inference

    network, profiles = published.read()
    _show(trait_inference(network, profiles, name), as_json)


@app.command()
@command
def identity(
    published: Published,
    knows: KnownTraits,
    as_json: options.Json = False,
) -> None:
    """Find the likeliest record of a target in an anonymous table, from traits of theirs."""
    from tulle.attacks import identity_inference

    network, profiles = published.read()
    _show(identity_inference(network, profiles, traits=knows), as_json)


@app.command("new-trait")
@command
def new_trait(
    name: Annotated[str, typer.Argument(metavar="TRAIT", help="The trait to infer.")],
    published: Published,
    knows: KnownTraits,
    as_json: options.Json = False,
) -> None:
    """Infer a further trait of a target whose record is in an anonymous table."""
    from tulle.attacks import new_trait_inference

    network, profiles = published.read()
    _show(new_trait_inference(network, profiles, traits=knows, new=name), as_json)


@app.command()
@command
def membership(
    release: Released,
    genotypes: GenotypeFile,
    members: Members,
    reference: Reference,
    as_json: options.Json = False,
) -> None:
    """Guess who was among the cases of a study, from its released allele counts."""
    from tulle.attacks import membership_inference
    from tulle.cli import adversary
    from tulle.core.release import Release

    loaded = Release.load(release)
    people = adversary.Suspects.read(loaded, genotypes, members, reference)
    found = membership_inference(
        loaded, people.profiles, reference=people.reference, truth=people.members
    )
    _show(found, as_json)


@app.command()
@command
def inversion(
    release: Released,
    people: People,
    sensitive: Sensitive,
    marginal: Marginal,
    unknown: Unknown = None,
    confusion: Confusion = None,
    deviation: Deviation = None,
    as_json: options.Json = False,
) -> None:
    """Guess a feature of people from a released model and their outcomes."""
    from tulle.attacks import feature_inference
    from tulle.cli import adversary
    from tulle.core.release import Release
    from tulle.models import Model

    loaded = Release.load(release)
    targets = adversary.AttackTargets.read(
        Model.of(loaded), people, sensitive, marginal, unknown or ()
    )
    found = feature_inference(
        loaded,
        sensitive=sensitive,
        marginal=targets.marginal,
        known=targets.known,
        unknown=targets.unknown,
        outcome=targets.outcome,
        confusion=adversary.read_confusion(confusion),
        deviation=deviation,
        truth=targets.truth,
    )
    _show(found, as_json)


def _show(found: AttackReport, as_json: bool) -> None:
    if as_json:
        print_json(found.to_json())
    else:
        from tulle.cli.output import facing

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
