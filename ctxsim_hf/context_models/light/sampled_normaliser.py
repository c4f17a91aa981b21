"""Source vectors and a sample of tokens -> estimates of the softmax normaliser, for training.

    exp(Z(v)) = sum over the targets t of exp(<v, o_t> + b_t)
              + others per sample * sum over the samples t of exp(<v, o_t> + b_t)

The first sum is exact; the second stands for all tokens that are no target. The estimate of exp(Z) is unbiased; that
of Z is a little low (the logarithm of a mean is above the mean of logarithms), less so for a larger sample, and exact
if the sample holds every token that is no target. Without the first sum, the logit of a target that is not in the
sample could grow without bound.
"""

import math

import torch


def choose_tokens(
    target_ids: torch.Tensor, sampled_ids: torch.Tensor, vocab_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens to sum over, and the logarithm of how many tokens each stands for (the log-Q correction).

    Args:
        target_ids (`(any number,)`): Target tokens, with repetitions.
        sampled_ids (`(samples,)`): Distinct tokens drawn uniformly; those that are targets are left out.
    """
    is_target = torch.zeros(vocab_size, dtype=torch.bool, device=target_ids.device)
    is_target[target_ids] = True
    own, others = is_target.nonzero().squeeze(1), sampled_ids[~is_target[sampled_ids]]
    correction = torch.zeros(len(own) + len(others), device=target_ids.device)
    if len(others):
        correction[len(own) :] = math.log((vocab_size - len(own)) / len(others))
    return torch.cat([own, others]), correction


def sampled_normaliser(
    source: torch.Tensor,
    target_ids: torch.Tensor,
    sampled_ids: torch.Tensor,
    output_embeddings: torch.Tensor,
    output_bias: torch.Tensor,
) -> torch.Tensor:
    """Estimate Z of each source: (rows, hidden) -> (rows,).

    Args:
        output_embeddings (`(vocabulary, hidden)`), output_bias (`(vocabulary,)`): The softmax layer.
    """
    chosen, correction = choose_tokens(target_ids, sampled_ids, len(output_bias))
    vectors = torch.nn.functional.embedding(chosen, output_embeddings)  # (chosen, hidden)
    return torch.addmm(output_bias[chosen] + correction.to(output_bias.dtype), source, vectors.T).logsumexp(1)
