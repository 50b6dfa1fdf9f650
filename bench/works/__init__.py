"""One module for each work that is measured. `run` yields its rows; a missing file of NEEDS leaves the work out."""

SST_TRAIN, SST_DEV = "sst/train.txt", "sst/dev.txt"
CONLL_TRAIN, CONLL_DEV = "conll2003/eng.train", "conll2003/eng.testa"
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
    "frozen_head": (SST_TRAIN,),
}
"""Works in the order they run, and the files under the data folder that each reads."""
