"""What replies of a server teach: a user's own count for that user, those of several users for all."""

from __future__ import annotations

from uuid import uuid4

from rag_service.models.llm.learned import Learned
from rag_service.recent import keep_for

ANNA, BERTA, CLARA, DORA = (uuid4() for _ in range(4))


def test_one_user_teaches_nobody_else() -> None:
    learned: Learned[int] = Learned()
    with keep_for(ANNA):
        for _ in range(20):
            learned.add(600)
        assert learned.value() == 600
    with keep_for(BERTA):
        assert learned.value() is None


def test_three_users_teach_a_fourth_their_median() -> None:
    learned: Learned[bool] = Learned()
    for user, value in ((ANNA, True), (BERTA, False), (CLARA, False)):
        with keep_for(user):
            learned.add(value)
    with keep_for(DORA):
        assert learned.value() is False
    with keep_for(ANNA):
        assert learned.value() is True


def test_one_odd_request_of_several_teaches_nothing() -> None:
    learned: Learned[float] = Learned()
    with keep_for(ANNA):
        for value in (1.1, 2.9, 1.2):
            learned.add(value)
        assert learned.value() == 1.2
