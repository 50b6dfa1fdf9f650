"""One module for each work that is measured. `run` yields its rows; a missing file of NEEDS leaves the work out."""

SST_TRAIN, SST_DEV = "sst/train.txt", "sst/dev.txt"
CONLL_TRAIN, CONLL_DEV = "conll2003/eng.train", "conll2003/eng.testa"
SNLI_TRAIN, SNLI_DEV = "snli/snli_1.0_train.jsonl.gz", "snli/snli_1.0_dev.jsonl"
SQUAD_TRAIN, SQUAD_DEV = "squad/squad1.1-train.json.gz", "squad/squad1.1-dev.json.gz"
NEW_WIKI = "squadshifts/new_wiki_v1.0.json.gz"
REVIEWS, FEW_REVIEWS = "lm_imdb_unsup/train.txt.gz", "lm_imdb_unsup/valid.txt.gz"

NEEDS: dict[str, tuple[str, ...]] = {
    "startup": (),
    "tokenising": (REVIEWS,),
    "word2vec": (REVIEWS,),
    "elmo_encoding": (SST_TRAIN,),
    "elmo_lstm_step": (),
    "elmo_pretraining": (FEW_REVIEWS,),
    "bert_encoding": (SST_TRAIN,),
    "bert_int8": (SST_TRAIN, SST_DEV),
    "bert_pretraining": (),
    "bert_fine_tuning": (SST_TRAIN,),
    "bert_tagging": (CONLL_TRAIN, CONLL_DEV),
    "bert_pairs": (SNLI_TRAIN, SNLI_DEV),
    "bert_questions": (SQUAD_TRAIN,),
    "frozen_head": (SST_TRAIN,),
    "frozen_two_texts": (SNLI_TRAIN, SNLI_DEV, SQUAD_TRAIN, SQUAD_DEV),
}
"""Works in the order they run, and the files under the data folder that each reads."""
