"""The templates of the cards that `ctxsim card` writes, installed as the package ctxsim_hf.hub.model_cards."""
