"""Genotypes: allele frequencies, tests of association, the strongest SNPs, and public catalogues.

Besides sealed :class:`~tulle.genomes.data.Genotypes` it reads what others
have published: a catalogue of associations, and the two-layer network of traits and SNPs made of
it, which attacks use.
"""

from tulle.core.public import exports

__getattr__, __dir__ = exports(__name__)
