"""Typical words of French, folded."""

from __future__ import annotations

FRENCH = frozenset(
    """
    abonnement abri absence accepter acces accident accord accueil achat achats acheter acier acompte activite actuel
    addition adresse adulte aeroport affaires affiche agir aide aides aimer ajout ajouter alerte aliment allemand
    aller allocation allumer ameliorer amende amendes amener ameublement ami amour analyse ancien anciennete ancre
    anglais animal annexe annonce annuaire annuel annulation annuler aout appareil appartement appel appeler apporter
    apprenti apprentissage appui apres argent argument armee arret arrets arrhes arriere arriver article ascenseur
    assez assurance assurances assure astreinte astreintes atelier ateliers atteindre attendre attention attestation
    aucun augmentation augmenter auteur autocar autorisation autorite autoroute autour autre autrefois autres avance
    avenant avis avocat avoirs badge baignoire bail bain baisse balance balle bande banque bas base bases bateau
    batiment beau beaucoup bebe belge belle benefice besoins betail bete beurre bibliotheque bientot biere bijou bilan
    billet blanc ble blesse bleu boire bois boite bon bonne bord borne bouche bouger boulanger bourse bout bouteille
    boutique bras brebis brique brouillon bruit brule brun budgetaire bulletin bureau bureaux bus cabinet cable cachet
    cadeau cadeaux cadre cadres caisse calcul camera camion campagne cantine capable capacite capitale capitaux
    caractere carre carte cartes carton cas casier casque catalogue cause cautionnement ceinture celebre centaine
    centre cerveau chacun chaine chaise chaleur chambre champ chance changement changer chanson chanter chantier
    chantiers chapitre chaque charbon charge charger charges chasse chat chateau chaud chaudiere chauffage chauffeur
    chaussures chef chefs chemin cheque cher chercher cheval cheveux chez chien chiffre chiffres choisir choix chomage
    chose choses chute ciel cinq circulation citoyen citron clair classe classement classer classeur cle cles client
    coeur coin colere colis collecte collegue coller colline colonne combattre comite commande commander commerce
    commission commun commune communes communiquer comparer complet completer comprendre comptabilite comptable compte
    comptes conception concours condition conducteur conduire conduite confiance confirmer conge conges connaissance
    connaitre connu conseil conserver consigne consommation consommer construire contenir contenu contraire contrat
    contribution controle controler convenir convention copie corps corriger cote cotes cotisation cotisations coucher
    couleur couloir coupe couper cour courant courir courriel courrier course court cout couteau couter couts
    couverture crainte creance credit creer crime croire croissance cuir cuisine cuivre cultiver culture cyclisme
    danger danse date davantage debattre deborder debut decembre dechets decider decision declaration declarer
    decompte decouvrir decrire dedommagement defaut definir degat degre dehors deja dejeuner delai delais delegue
    demain demande demander demarche demenagement demi demission democratie dent dents depart depasser depense
    depenses deplacement deplacements deposer depot depuis dernier derniere descendre desherence desir dessin dessous
    dessus detail detruire dette deux developpement developper devenir deviner devis devoir dieu difference different
    difficile dimanche diminuer dire directeur direction directrice dirigeant discours disponibilite disposer distance
    distribution divers dividende dividendes dix docteur document doigt domaine domicile dommage dommages donnees
    donner dossier dossiers douane doublure douleur douze droit droits duree eau eaux eclairage ecole economie
    economique ecouter ecran ecrire effacer effectif effectifs effectuer effet effort egal eglise electricite
    electrique element eleve elever elire eloigner emballage empecher empire employe employee employes employeur
    emporter emprunt encore energie enfant enfants engagement enlever ennemi enregistrement enregistrer enseignant
    ensemble ensuite entendre enterrer entier entourer entre entree entrees entreprise entretien environ envoi envoyer
    epais epaule epoque equipe equipement erreur escalier espace espece esperer espoir esprit essai estime etablir
    etablissement etage etape etat etendre etoile etranger etroit etude etudiant europeen evenement evidence evier
    eviter evolution exact examen excuser executer exemple exercice exiger existence experience explication expliquer
    exposer exprimer exterieur fabriquer facade face facile facilement facon facture factures faible faillite faim
    famille fauteuil faux favori federation feminin femme fenetre fer ferie feries ferme fermer fermeture fete feu
    feuille fevrier fiche fiches fichier fidele fier figure fille fils fin financement fixe fixer flamme fleur fleuve
    foi foire fonction fonctionnaire fonctionnement fond fonds force foret formation forme former formulaire fort
    foule four fournir fournisseur fourniture frais francais franchir frapper frere froid frontiere fruit fuite fumee
    fumer gagner gamme gant garage garantie garde garder gardien gare gateau gauche gaz gele general generation genou
    genre gens gestion glace gouvernement grain grand grandir gras gratuit grave gravite greve greves gros grossesse
    groupe guerir guerre guichet habillement habitation habiter habitude handicap haut hauteur heberge hebergement
    heritier hiver homme hommes honneur hopital horaire horaires horloge hors hotel hotellerie huile huit humain
    humeur hygiene idee ile image imaginer immeuble immobilier important imposition impot impots impression imprimante
    imprime imprimer inaptitude incendie inclure inconnu indemnite indemnites indiquer industrie influence information
    informatique informer infos ingenieur inonder inquieter inscription installer instant interdit interessement
    interieur interimaire interroger interrompre intervenir inutile inventaire inviter isole ivoire jamais jambe
    janvier jardin jaune jeter jeu jeudi jeune jeux joie joindre joli jouer joueur journal journaux journee juge
    juillet juin justice lac laine laisser lait lancer langage langue large larme lave laver lecteur lecture leger
    legume legumes lent lettre lever liaison liberte libre lien lier lieu lieux ligne limite limiter linge liquide
    lire liste lit livraison livraisons livre livrer livres local localite locataire logement logements logiciel
    logique loi loin lois longtemps longueur louer lourd loyer loyers lumiere lumineux lundi lune lunettes lutte
    machine madame magasin mail main maintenance maintenir maire mairie maison maitre malade maladie maladies malgre
    manager manche manger maniere manquant manque manquer manteau marchandise marche marcher mardi mari mariage mariee
    marin marque marraine masse maternite matiere matin matinee mauvais maximum mecanique medaille medecin medicament
    meilleur melange membre memoire menace menage mener mensonge mensuel mer mere merite message mesure metal metier
    metres mettre meuble meurtre mieux milieu militaire mille mince mine minimum ministre minuit minute mise mobilite
    mode modele moderne moindre mois moitie monde monnaie monsieur montagne montant montants monter montrer morceau
    mort mot moteur mouiller moulin mourir mouvement moyen moyenne moyens multiplier mur musee musique mutuelle
    mystere nager naissance naitre nation nature naturel navire necessaire negatif neige nettoyage nettoyer neuf
    niveau niveaux noel noir nom nombre nombreux nommer nord normal norme notaire note notion nourrir nourriture
    nouveau nouvelle nu nuage nuire nuit nuits numero obeir objet obligatoire observer obtenir occasion occupe occuper
    oeil oeuf oeuvre officiel offre offres oiseau ombre operation opposer orage orange ordinateur ordinateurs ordre
    oreille organe organiser organisme origine oser oublier ouest outil outils ouvert ouverture ouvrage ouvrier ouvrir
    page pages paiement paiements pain paire paix palais panier panne pantalon papier paquet parcours pareil parent
    parents paresse parfois parking parler parole part partage partager partie parties partir passage passager passer
    pate patience patron paume pauses pauvre paye payement payer pays paysage peau peche peine penalite pendre
    penibilite pensee penser percer perdre perdu periode permis personne personnel perspective perte peser petit
    petite peuple peur phrase piece pieces pied pierre pile pilote pire piscine place plafond plafonds plage plainte
    plaire plaisir plan planche plancher planning plante plat plein pleurer plier plomb pluie pluriel pneu poche
    poesie poids poing point pointage pointe poire poisson poitrine poli police politique pollution pomme pompier pont
    population porc porte porter portes porteur poser position possible poste postes pot poubelle poulet poupee
    pourboire poursuite pourvoi pousser poussiere pouvoir preavis precedent precis prefecture preferer premier
    premiere prendre prenom preparer presence present presque presse pression pret prets preuve prevenir prevoyance
    prier prime primes prince principal printemps prise prison prive prix probleme proces prochain proche production
    produire produit produits professionnel profond programme progres projet promener promesse promotion proposer
    propre proprietaire protection proteger province public puce puissance puissant puits pull punir pur quai qualite
    quantite quarante quart quartier quatre question queue quinzaine quinze quitter quotidien rabais race racine
    raconter raisin raison ramasser ramener rang ranger rapide rappeler rapport rapports rare rassembler rayon rayure
    realiser recette recevoir recherche reclamation recolter reconnaitre recours recrue recrutement recruter recu
    rediger reduction reduire refus refuser regard regarder region regle reglement reglementaire regles regretter
    relation relever religion remarque remboursement remboursements rembourser remede remercier remise remonter
    remplacant remplace remplacement remplacer remplir remuneration rencontre rencontrer rendement rendez rendre
    renoncer renouvellement renseignement renseigner rentree rentrer repandre reparation repartir repas repeter
    repondre reponse repos reposer reprendre representer republique reseau reserve reserver resister respect respirer
    responsabilite ressembler ressources restaurant restauration reste rester resultat retard retards retenir retirer
    retour retourner retraite retraites retrouver reunion reunions reussir reveil reveiller reveler revenir revenu
    revenus reviser revision revoir revolution riche rideau rire risque risques riviere robe robinet roche roi roman
    rompre rond rose roue rouge rouler route royaume rue rupture rural sable sac sage saisir saison salaire salaires
    salarie salaries sale salle salles saluer samedi sang sante sauter sauvage sauver savoir savon scene science seche
    secher second secours secret secteur section securite sein sejour sel semaine semblable sembler semestre sens
    sensation sentiment sentir separer serie serieux serrer serrure serveur service serviette servir seuil seuils seul
    seulement severe siecle siege signal signature signe signer signifier silence simple singe situation situer
    societe soeur soif soigner soins soir soiree soixante soldat soleil solide sols solution sombre somme sommeil
    songe sonner sorte sortie sortir souci souffle souffrir souhaiter soulever soumettre soupe souple source sourire
    souris sous soutien souvenir souvent spectacle sport stage stages stagiaire station stock stockage structure
    subvention succes sucre sud suffire suggerer suite suivant suivre sujet supporter supprimer surface surprise
    surtout surveillance surveiller syndicat systeme tabac table tableau tableaux tache taches taille tailleur taire
    tandis tapis tard tarif tarifs tasse taux taxe technique telephone teletravail television temoignage temoin
    temperature tempete tenir tension tenue terme terminer terrain terre tete texte theatre ticket tiens tiers tige
    timbre tirer tissu titre titres toile toilettes toit tomate tombe tomber tonneau torchon tort total touche toucher
    tour tourisme tournee tourner trace traduire trahir train traitement traiter trajet trajets trancher tranquille
    transferer transformer transmettre transport transports travail travailler travaux travers traverser treizieme
    tribunal trimestriel triste tromper trou trouble troupe trouver tuer tuyau type urgence usage usine usines utile
    utilisateur utiliser vacances vache vague vaincre vaisselle valable valeur valeurs valise vallee vapeur vehicule
    vehicules veille velo velos vendeur vendre vendredi vendu venir vent vente ventes ventre verite vernis verre vers
    versement verser version vert veste vestiaire vetement vetements viande victime victoire vide vider vie vieux vif
    vigne village ville villes vin violent virement visage viser visible visite visiter visiteur vitesse vitre vivant
    vivre voile voir voisin voiture voitures voix vol voler volet volontaire volonte volume vouloir voyage voyager
    voyages vrai vue zone
    """.split()  # noqa: SIM905  # words, to be read and added to
)
