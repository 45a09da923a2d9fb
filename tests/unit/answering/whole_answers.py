"""Whole answers as models write them: faithful ones, and ones with one fault. Own texts, in three languages."""

from __future__ import annotations

PASSAGES = {
    "en": (
        "Bicycle room. Residents may keep one bicycle per flat in the bicycle room. A second bicycle costs 6 euros a "
        "month. The room is open from 6 to 23 h. Electric scooters are not admitted, because their batteries may catch "
        "fire. Keys are handed out by the caretaker, Mr Orton, on Tuesdays. A lost key costs 18 euros. Bicycles "
        "without a sticker are removed after 30 days, unless the owner has told the caretaker.",
        "Guest flat. The guest flat sleeps four people and can be booked for at most 7 nights. The price is 35 euros "
        "a night, cleaning included. Bookings open 60 days before arrival. If you cancel at least 5 days before "
        "arrival, you get half of the price back. Dogs are allowed, cats are not. Families | B | 48 euros a night.",
    ),
    "es": (
        "Biblioteca de barrio. El carné es gratuito para los vecinos y cuesta 12 euros al año para los demás. Se "
        "pueden llevar en préstamo hasta 8 libros durante 21 días. Las revistas no se prestan. Cada día de retraso "
        "supone un día sin préstamo. El préstamo se renueva dos veces, salvo que otra persona haya reservado el libro.",
        "Sala de estudio. La sala abre de lunes a viernes de 9 a 21 h y los sábados de 10 a 14 h. Tiene 64 plazas. No "
        "se puede reservar plaza. Los menores de 14 años deben ir acompañados. La responsable de la sala es Marta Gil. "
        "Aula pequeña | 6 plazas | 4 euros la hora.",
    ),
    "fr": (
        "Piscine municipale. L'entrée coûte 5 euros pour les adultes et 3 euros pour les enfants. Les enfants de moins "
        "de 8 ans doivent être accompagnés d'un adulte. Le bonnet de bain est obligatoire. La piscine ferme le mardi "
        "pour entretien. L'abonnement de 10 entrées coûte 42 euros et reste valable 12 mois.",
        "Cours de natation. Les cours durent 45 minutes et commencent le 15 septembre. Le groupe compte au plus 9 "
        "élèves. L'inscription n'est remboursée que sur certificat médical. Monsieur Tessier dirige les cours du "
        "matin. "
        "Bassin nordique | 28 degrés | de 7 h à 20 h.",
    ),
}

# (language, answer): every sentence is said by the passage that it cites, in other words or in the same.
FAITHFUL = [
    ("en", "Residents may keep one bicycle per flat in the bicycle room [C1]. A second costs 6 euros a month [C1]."),
    ("en", "No, electric scooters are not admitted, as their batteries may catch fire [C1]."),
    ("en", "Mr Orton, the caretaker, hands out the keys on Tuesdays [C1]. Losing one costs 18 euros [C1]."),
    ("en", "A bicycle that has no sticker is taken away after 30 days, unless its owner has told the caretaker [C1]."),
    ("en", "You can book the guest flat for 7 nights at most [C2]. It sleeps four people [C2]."),
    ("en", "A night costs 35 euros and cleaning is included [C2].\n\nBook from 60 days before you arrive [C2]."),
    ("en", "Half of the price is returned if you cancel 5 days or more before arrival [C2]."),
    ("en", "Dogs are allowed, cats are not [C2]. Families pay 48 euros a night for B [C2]."),
    ("es", "El carné no cuesta nada a los vecinos; los demás pagan 12 euros al año [C1]."),
    ("es", "Puedes llevarte hasta 8 libros durante 21 días [C1]. Las revistas no se prestan [C1]."),
    ("es", "Por cada día de retraso se pasa un día sin préstamo [C1]."),
    ("es", "El préstamo puede renovarse dos veces, salvo que alguien haya reservado el libro [C1]."),
    ("es", "La sala abre de lunes a viernes de 9 a 21 h [C2]. El sábado el horario es de 10 a 14 h [C2]."),
    ("es", "Hay 64 plazas y no es posible reservar [C2]."),
    ("es", "Los menores de 14 años tienen que ir acompañados [C2]. La responsable es Marta Gil [C2]."),
    ("es", "El aula pequeña tiene 6 plazas y cuesta 4 euros la hora [C2]."),
    ("fr", "Un adulte paie 5 euros et un enfant 3 euros [C1]."),
    ("fr", "Avant 8 ans, un enfant doit venir avec un adulte [C1]. Le bonnet de bain est obligatoire [C1]."),
    ("fr", "La piscine est fermée le mardi, pour entretien [C1]."),
    ("fr", "L'abonnement de 10 entrées revient à 42 euros [C1]. Il est valable 12 mois [C1]."),
    ("fr", "Chaque cours dure 45 minutes [C2]. Le premier a lieu le 15 septembre [C2]."),
    ("fr", "Un groupe ne dépasse pas 9 élèves [C2]."),
    ("fr", "L'inscription n'est remboursée que sur présentation d'un certificat médical [C2]."),
    ("fr", "Les cours du matin sont dirigés par Monsieur Tessier [C2]. Le bassin nordique est à 28 degrés [C2]."),
]  # fmt: skip

# (language, fault, answer): one sentence at least is not what the passages say, or proves nothing.
FAULTY = [
    ("en", "number", "A second bicycle costs 9 euros a month [C1]."),
    ("en", "negation", "A second bicycle costs 6 euros a month [C1]. Electric scooters are admitted [C1]."),
    ("en", "dropped condition", "Bicycles without a sticker are removed after 30 days [C1]."),
    ("en", "limit", "The guest flat can be booked for at least 7 nights [C2]."),
    ("en", "swap", "Cats are allowed, dogs are not [C2]."),
    ("en", "wrong mark", "The guest flat sleeps four people and can be booked for at most 7 nights [C1]."),
    ("en", "no source", "A lost key costs 18 euros [C1]. The lock is changed every spring [C1]."),
    ("en", "no mark", "A lost key costs 18 euros [C1].\n\nThe police must be told at once."),
    ("es", "number", "Se pueden llevar en préstamo hasta 12 libros durante 21 días [C1]."),
    ("es", "polarity", "Las revistas se prestan [C1]."),
    ("es", "dropped condition", "El préstamo se renueva dos veces [C1]."),
    ("es", "name", "Tiene 64 plazas [C2]. La responsable de la sala es Laura Gil [C2]."),
    ("es", "modality", "Los menores de 14 años pueden ir acompañados [C2]."),
    ("es", "refusal", "Lo siento, no dispongo de esa información."),
    ("es", "label", "La sala abre de lunes a viernes de 10 a 14 h y los sábados de 9 a 21 h [C2]."),
    ("es", "invented mark", "Las revistas no se prestan [C7]."),
    ("fr", "label", "L'entrée coûte 3 euros pour les adultes et 5 euros pour les enfants [C1]."),
    ("fr", "modality", "Le bonnet de bain est facultatif [C1]."),
    ("fr", "date", "La piscine ferme le jeudi pour entretien [C1]."),
    ("fr", "unit", "L'abonnement de 10 entrées coûte 42 euros et reste valable 12 jours [C1]."),
    ("fr", "restriction", "L'inscription est remboursée [C2]."),
    ("fr", "limit", "Le groupe compte au moins 9 élèves [C2]."),
    ("fr", "refusal", "Les documents ne précisent pas le prix des cours."),
    ("fr", "half", "Le bonnet de bain est obligatoire [C1]. Les palmes sont prêtées sur place [C1]."),
]  # fmt: skip
