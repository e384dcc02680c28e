# Written by tools/index.py from the registrations in the source; not to be edited.
from tulle.genomes.catalogue import Association as Association
from tulle.genomes.catalogue import Catalogue as Catalogue
from tulle.genomes.data import Genotypes as Genotypes
from tulle.genomes.estimates import SnpEstimates as SnpEstimates
from tulle.genomes.estimates import allele_frequencies as allele_frequencies
from tulle.genomes.estimates import association_tests as association_tests
from tulle.genomes.estimates import odds_ratios as odds_ratios
from tulle.genomes.estimates import score_intervals as score_intervals
from tulle.genomes.estimates import significance as significance
from tulle.genomes.network import TraitNetwork as TraitNetwork
from tulle.genomes.queries import allele_counts as allele_counts
from tulle.genomes.queries import chi_squares as chi_squares
from tulle.genomes.queries import p_values as p_values
from tulle.genomes.queries import top_snps as top_snps
