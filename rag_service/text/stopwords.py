"""Function words of each language, folded: they match everything and say nothing.

Words that carry time, number, negation or comparison ("before", "ninguno", "sans") are kept out of
the lists: leaving them in the index raised MRR on both languages of the development set.

Written for this project. Question words are among them, since a passage that says "what" is no
better an answer to "what is ...".
"""

from __future__ import annotations

STOP_WORDS: dict[str, frozenset[str]] = {
    "es": frozenset(
        """
        a al algo algun alguna algunas alguno algunos ante aquel aquella aquellas aquello aquellos
        aqui asi aun aunque bien cabe casi como con conmigo contigo cosa cual cuales cualquier
        cualquiera cuando cuanta cuantas cuanto cuantos cuya cuyas cuyo cuyos da dar de debe deben
        debo del demas dice donde dos e el ella ellas ello ellos en entonces era erais eramos eran
        eras eres es esa esas ese eso esos esta estaba estaban estado estamos estan estar estara
        este esto estos estoy etc fue fuera fueron fui ha hace hacen hacer hacia hago han has hay
        haya he hemos hizo hubo la las le les lo los luego me mi mia mias mio mios mis mismas
        necesita necesitamos necesitan necesito ni ninguno nos nosotras nosotros nuestra nuestras
        nuestro nuestros o os para pero por porque puede pueden puedo pues que quien quienes quiero
        se sea sean ser sera seran si sido sino sois somos son soy su sus suya suyas suyo suyos tal
        tan tanto te tendra tendran tenemos tener tengo ti tiene tienen tienes todavia tu tus tuya
        tuyas tuyo tuyos un una unas uno unos usted ustedes va van vosotras vosotros voy vuestra
        vuestras vuestro vuestros y ya yo
        """.split()
    ),
    "fr": frozenset(
        """
        a afin ai aie ainsi allons alors as au aura auront aussi aux avait avec avez avoir
        avons ayant besoin c ca car ce ceci cela celle celles celui ces cet cette ceux
        combien comme comment d dans de des devez devons dois doit doivent donc dont du elle
        elles en er es est et etaient etait etant ete etes etre eu eux faire fait faut fut
        il ils j je jusqu l la le les leur leurs lors lorsqu lorsque lui m ma mais me mes
        mien moi mon n ne ni nos notre nous on ont or ou par parce pas peut peuvent peux
        pour pourquoi pouvez pouvons puis puisqu puisque qu quand que quel quelle quelles
        quelqu quels qui quoi s sa se sera seront ses si sien soit sommes son sont suis t ta
        te tes toi ton tu un une va vais veut veux vont vos votre voudrais voulez voulons
        vous y
        """.split()
    ),
    "en": frozenset(
        """
        a also am an and any are aren as at be because been being but by can cannot could couldn d
        did didn do does doesn doing don either else ever for from get had hadn has hasn have haven
        having he her here hers herself him himself his how however i if in into is isn it its
        itself just ll many may me might much my myself need needed needs nor of on one or our ours
        ourselves per re s shall she should shouldn t that the their theirs them themselves there
        these they this those to upon us ve was wasn we were weren what when where whether which who
        whom whose why will with within won would wouldn you your yours yourself yourselves
        """.split()
    ),
}

# Frequent words that are indexed, since they say something, and that tell a language besides. A word that
# two languages share stands in neither list.
TELLING_WORDS: dict[str, frozenset[str]] = {
    "es": frozenset(
        """
        antes ano anos cada despues desde dia dias donde hasta hora horas mas muy otra otro semana semanas
        siempre sin sobre toda todas todo todos dos
        """.split()
    ),
    "fr": frozenset(
        """
        an ans annee annees apres avant avec bien chaque chez depuis deux dernier derniere heure heures
        jamais jour jours loin mois moins non oui pendant personne prochain prochaine sans semaine semaines sous
        temps toujours tous tout toute toutes trois trop vers
        """.split()
    ),
    "en": frozenset(
        """
        about after all before between day days every first hour hours last less long month months more most never
        new next no not only over same than then three two under very week weeks without year years
        """.split()
    ),
}
