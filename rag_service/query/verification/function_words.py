"""Function words, which every sentence holds and which therefore prove nothing.

A list of its own, apart from the one that search uses: that one is tuned for retrieval, and the threshold of
`verification/evidence.py` was measured with this one. Lower case, without accents. Written for this project.
"""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "es": frozenset(
        """
        a acerca ademas al algo algun alguna algunas alguno algunos ambas ambos ante aquel aquella aquellas
        aquello aquellos aqui asi aun aunque bajo bien cabe cada casi cierta ciertas cierto ciertos como con
        conforme conmigo contigo contra cosa cual cuales cualquier cualquiera cuando cuanta cuantas cuanto
        cuantos cuya cuyas cuyo cuyos da dar de debe deben debo del demas desde dice documento documentos
        donde dos durante e el ella ellas ello ellos en entonces entre era erais eramos eran eras eres es
        esa esas ese eso esos esta estaba estaban estado estamos estan estar estara este esto estos estoy
        etc fue fuera fueron fui ha hace hacen hacer hacia hago han has hasta hay haya he hemos hizo hubo la
        las le les lo los luego me mediante mi mia mias mientras mio mios mis misma mismas mismo mismos
        mucha muchas mucho muchos muy necesita necesitamos necesitan necesito ni ningun ninguno nos nosotras
        nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poca poco pocos por
        porque propia propio puede pueden puedo pues que quien quienes quiero respecto se sea sean segun ser
        sera seran si sido siempre siendo siguiente siguientes sino sobre sois solamente solo somos son soy
        su sus suya suyas suyo suyos tal tambien tampoco tan tanto te tendra tendran tenemos tener tengo
        texto ti tiene tienen tienes toda todas todavia todo todos tras tu tus tuya tuyas tuyo tuyos un una
        unas uno unos usted ustedes va van vez vosotras vosotros voy vuestra vuestras vuestro vuestros y ya
        yo
        """.split()  # noqa: SIM905  # a list literal would take a page
    ),
    "fr": frozenset(
        """
        a afin ai aie ainsi alors apres as au aupres aura auront aussi autre autres aux avait avec avez
        avoir avons ayant besoin c ca car ce ceci cela celle celles celui certain certains ces cet cette
        ceux chaque chez combien comme comment concernant contre d dans de deja depuis des document
        documents doit doivent donc dont du elle elles en encore entre es est et etaient etait etant ete
        etes etre eu eux faire fait faut fut il ils j je jusqu jusque l la le les leur leurs lors lorsqu
        lorsque lui m ma mais me meme memes mes mien moi mon n ne ni nos notamment notre nous on ont or ou
        par parce parmi pas pendant peu peut peuvent plus plusieurs pour pourquoi puis qu quand que quel
        quelle quelles quelque quelques quels qui quoi s sa sans se selon sera seront ses si sien soit
        sommes son sont sous suis suivant suivante suivantes suivants sur t ta tandis te tes texte toi ton
        tous tout toute toutes tres tu un une vers veut voici voila vos votre vous y
        """.split()  # noqa: SIM905  # a list literal would take a page
    ),
    "en": frozenset(
        """
        a about above across after again against all along also although am among an and another any are
        aren around as at be because been before being below between beyond both but by can cannot could
        couldn d did didn do document documents does doesn doing don down during each either else even ever
        every few following for from further get had hadn has hasn have haven having he her here hers
        herself him himself his how however i if in into is isn it its itself just less ll many may me might
        more most much my myself need needed needs neither nor of off on one only onto or other others our
        ours ourselves out over own per re s same several shall she should shouldn since so some still such
        t text than that the their theirs them themselves then there therefore these they this those through
        throughout to too toward towards under until up upon us ve very via was wasn we well were weren what
        when whenever where wherever whether which while who whom whose why will with within won would
        wouldn yet you your yours yourself yourselves
        """.split()  # noqa: SIM905  # a list literal would take a page
    ),
}
