"""The method written again, slowly and without anything clever: one example, one segment, one step at a time.

Nothing of the library's recurrences, windows or losses is used, only its parameters. Gradients are cut by an explicit
`detach` before the first step of a window. The fast path must give the same values and the same gradients.
"""

import itertools

import torch
import torch.nn.functional as F


def embed(embedding, x_D):
    """Apply the linear embedding, or look a token up."""
    if x_D.dtype == torch.long:
        return embedding.weight_VE[x_D]
    return embedding.weight_ED @ x_D + embedding.bias_E


def lstm_step(cell, x_I, state):
    """Do one step of all layers; a state is a list of (h, c)."""
    next_state = []
    for layer, (last_h_H, last_c_H) in enumerate(state):
        gates_G = cell.weight_ih[layer] @ x_I + cell.weight_hh[layer] @ last_h_H + cell.bias[layer]
        i_H, f_H, g_H, o_H = gates_G.chunk(4)
        c_H = torch.sigmoid(f_H) * last_c_H + torch.sigmoid(i_H) * torch.tanh(g_H)
        h_H = torch.sigmoid(o_H) * torch.tanh(c_H)
        next_state.append((h_H, c_H))
        x_I = h_H
    return next_state


def zeros(cell):
    return [(cell.bias[0].new_zeros(cell.hidden_size),) * 2 for _ in range(cell.num_layers)]


def cut(state):
    return [(h_H.detach(), c_H.detach()) for h_H, c_H in state]


def read(encoder, x_TD, *, num_steps, window):
    """Read the first `num_steps` steps of one sequence; the gradient reaches the last `window` of them."""
    state = zeros(encoder.cell)
    for t in range(num_steps):
        if window != "full" and t == num_steps - window:
            state = cut(state)
        state = lstm_step(encoder.cell, embed(encoder.embedding, x_TD[t]), state)
    return cut(state) if window == 0 else state


def head(module, x_H, kept_CF):
    weight = module.output.weight if kept_CF is None else kept_CF * module.output.weight
    return F.linear(F.relu(module.hidden(x_H)), weight, module.output.bias)


def token_loss(output_O, target, is_there_O=None):
    """Give the loss of one token; of values that are not there, and of the masks at the end of a target, nothing."""
    if target.dtype == torch.long:
        return -torch.log_softmax(output_O, dim=0)[target]
    total = 0.0
    for number, output in enumerate(output_O):
        if is_there_O is None or is_there_O[number]:
            total = total + (output - target[number]) ** 2
    return total


def start_decoder(cell, main_state):
    num_shared = min(cell.num_layers, len(main_state))
    return main_state[-num_shared:] + zeros(cell)[num_shared:]


def reconstruct(
    objective, encoder, x_TD, *, anchor, start, length, kept=None, is_true=None, choose=None, is_there_TD=None
):
    """Give the summed loss of one segment; `is_true` says which inputs are true tokens, `choose` feeds the others."""
    main = read(encoder, x_TD, num_steps=anchor + 1, window=objective.window)
    positions = list(range(start, start + length + 1))
    if objective.order == "reversed":
        positions.reverse()
    state, total, output = start_decoder(objective.decoder.cell, main), 0.0, None
    for s, (position, target_position) in enumerate(itertools.pairwise(positions)):
        token = x_TD[position]
        if is_true is not None and s > 0 and not is_true[s]:
            token = choose(output.detach(), s - 1)
        state = lstm_step(objective.decoder.cell, embed(encoder.embedding, token), state)
        output = head(objective.decoder.head, state[-1][0], kept)
        total = total + token_loss(output, x_TD[target_position], _row(is_there_TD, target_position))
    return total


def _row(is_there_TD, position):
    return None if is_there_TD is None else is_there_TD[position]


def predict(objective, encoder, x_TD, *, anchor, length, kept=None, is_there_TD=None):
    """Give the summed loss of one segment, cutting at the anchor and every `window` steps after it."""
    is_full = objective.window == "full"
    main = read(encoder, x_TD, num_steps=anchor, window="full" if is_full else 0)
    upper = None if objective.upper is None else zeros(objective.upper)
    total = 0.0
    for s in range(length):
        if not is_full and s > 0 and s % objective.window == 0:
            main = cut(main)
            upper = None if upper is None else cut(upper)
        main = lstm_step(encoder.cell, embed(encoder.embedding, x_TD[anchor + s]), main)
        top_H = main[-1][0]
        if upper is not None:
            upper = lstm_step(objective.upper, top_H, upper)
            top_H = upper[-1][0]
        target = anchor + s + 1
        total = total + token_loss(head(objective.head, top_H, kept), x_TD[target], _row(is_there_TD, target))
    return total
