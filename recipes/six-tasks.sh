#!/bin/sh
# The table of six: scratch, word vectors, ELMo and BERT on the six tasks on which ELMo was judged (Peters et al. 2018,
# table 1), with 1,000 labelled examples of each, 40 documents for coreference, and three seeds.
#
#   sh recipes/six-tasks.sh DATA OUT [further options of `headstart reproduce`, such as --quick]
#
# DATA: the folder with squad/, snli/, srl_ewt/, ontogum_coref/, conll2003/ and sst/; docs/reproduce.md names the files,
#       and tasks whose files are not there are left out.
# OUT:  for results and runs; the page is OUT/six-tasks.md. After a stop, the same command goes on where it was.
#
# Needs `headstart` on the path. Downloads GloVe (glove-50d, 69 MB) and a BERT of six layers (minilm, 84 MB), once; the
# ELMo comes with the package. Takes about an hour and a half on two cores; with --quick under ten minutes, for weaker
# verdicts.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: sh recipes/six-tasks.sh DATA OUT [--quick]" >&2
    exit 2
fi
data=$1
out=$2
shift 2
exec headstart reproduce six-tasks --data "$data" --out "$out" --static glove-50d --page "$out/six-tasks.md" "$@"
