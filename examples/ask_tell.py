"""The whole loop: ask, measure, tell, and in the end recommend.

Replace `person.respond(query)` by your own trial: apply `query.policy`, measure the outcomes, ask
which of the last two conditions the person preferred, and return `Response(outcome, choice)`.
"""

from sfihilo import Settings, ask, begin, load, recommend, save, tell
from sfihilo.study.people.users import sample_user

QUERIES = 25

person = sample_user(policy_dim=4, outcome_dim=3, seed=1)
state = begin(Settings(policy_dim=4, outcome_dim=3), seed=0)

for _ in range(QUERIES):
    query = ask(state)
    response = person.respond(query)
    state = tell(state, query, response)
    # A saved state is text. Loaded in another process, it asks the same next question.
    state = load(save(state))

best = recommend(state)
print("after", len(state.history), "trials, the recommended policy:", best.policy.round(2))
for name, low, value, high in zip(
    ("effort", "comfort", "speed"), best.outcome_low, best.outcome, best.outcome_high, strict=True
):
    print(f"  predicted {name:8} {value:.2f}  ({low:.2f} to {high:.2f})")
if best.extrapolates:
    print("  it lies outside of what was tried: try it before trusting it")
