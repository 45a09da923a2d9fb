"""Function words of each language, folded: they match everything and say nothing.

Written for this project. Question words are among them, since a passage that says "what" is no
better an answer to "what is ...".
"""

from __future__ import annotations

STOP_WORDS: dict[str, frozenset[str]] = {
    "es": frozenset(
        """
        a al algo algun alguna algunas alguno algunos ante antes aquel aquella aquellas aquello
        aquellos aqui asi aun aunque bajo bien cabe cada casi como con conmigo contigo contra cosa
        cual cuales cualquier cualquiera cuando cuanta cuantas cuanto cuantos cuya cuyas cuyo cuyos
        da dar de debe deben debo del demas desde dice donde dos durante e el ella ellas ello ellos
        en entonces entre era erais eramos eran eras eres es esa esas ese eso esos esta estaba
        estaban estado estamos estan estar estara este esto estos estoy etc fue fuera fueron fui ha
        hace hacen hacer hacia hago han has hasta hay haya he hemos hizo hubo la las le les lo los
        luego mas me mi mia mias mientras mio mios mis misma mismas mismo mismos mucha muchas mucho
        muchos muy nada ni ningun ninguna ninguno no nos nosotras nosotros nuestra nuestras nuestro
        nuestros o os otra otras otro otros para pero poco por porque puede pueden puedo pues que
        quien quienes quiero se sea sean segun ser sera seran si sido siempre sin sino sobre sois
        solo somos son soy su sus suya suyas suyo suyos tal tambien tampoco tan tanto te tendra
        tendran tenemos tener tengo ti tiene tienen tienes toda todas todavia todo todos tras tu tus
        tuya tuyas tuyo tuyos un una unas uno unos usted ustedes va van vosotras vosotros voy
        vuestra vuestras vuestro vuestros y ya yo
        """.split()
    ),
    "fr": frozenset(
        """
        a afin ai aie ainsi alors as au aucun aucune aujourd aura auront aussi autre autres aux
        avait avant avec avez avoir avons ayant beaucoup c ca car ce ceci cela celle celles celui
        ces cet cette ceux chacun chaque chez combien comme comment d dans de depuis des doit
        doivent donc dont du elle elles en encore entre es est et etaient etait etant ete etes etre
        eu eux faire fait faut fut hors il ils j je jusqu jusque l la le les leur leurs lors lorsque
        lui m ma mais me meme memes mes mien moi moins mon n ne ni nos notre nous on ont or ou par
        parce pas pendant peu peut peuvent plus pour pourquoi puis qu quand que quel quelle quelles
        quelque quelques quels qui quoi s sa sans se selon sera seront ses si sien soit sommes son
        sont sous suis sur t ta te tes toi ton tous tout toute toutes tres tu un une vers veut vos
        votre vous y
        """.split()
    ),
    "en": frozenset(
        """
        a about above after again against all also am an and any are aren as at be because been
        before being below between both but by can cannot could couldn d did didn do does doesn
        doing don down during each either else ever every few for from further get had hadn has hasn
        have haven having he her here hers herself him himself his how however i if in into is isn
        it its itself just ll many may me might more most much must my myself nor not now of off on
        once one only or other our ours ourselves out over own per re s same shall she should
        shouldn so some such t than that the their theirs them themselves then there these they this
        those through to too under until up upon us ve very was wasn we were weren what when where
        whether which while who whom whose why will with within without won would wouldn you your
        yours yourself yourselves
        """.split()
    ),
}
